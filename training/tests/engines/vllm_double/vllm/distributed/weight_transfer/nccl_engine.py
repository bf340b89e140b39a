"""What TRL's client imports; used only with a server and a GPU."""


class NCCLTrainerSendWeightsArgs:
    pass


class NCCLWeightTransferEngine:
    pass

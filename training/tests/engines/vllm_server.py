"""A double of ``vllm serve`` for TRL's own client: it answers over HTTP, as JSON.

Weights travel through NCCL, which needs a GPU; here they are handed over in the process.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from trl.generation.vllm_client import VLLMClient
from vllm import LLM, SamplingParams

SAMPLED = ("n", "repetition_penalty", "temperature", "top_p", "top_k", "min_p", "max_tokens")


class Handler(BaseHTTPRequestHandler):
    """The few addresses that TRL asks while text alone is written."""

    llm: LLM

    def do_GET(self):
        self.answer({"data": [{"id": "double"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
        if self.path == "/reset_prefix_cache":
            self.llm.reset_prefix_cache()
            return self.answer({"success": True})
        wanted = {name: asked[name] for name in (*SAMPLED, "logprobs", "stop_token_ids")}
        prompts = [{"prompt_token_ids": one} for one in asked["prompt"]]
        found = self.llm.generate(prompts, sampling_params=SamplingParams(**wanted), use_tqdm=False)
        return self.answer({"choices": [choice(one) for one in found]})

    def answer(self, told):
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def choice(request):
    (output,) = request.outputs
    return {
        "prompt_token_ids": request.prompt_token_ids,
        "token_ids": output.token_ids,
        "logprobs": {
            "tokens": [f"token_id:{one}" for one in output.token_ids],
            "token_logprobs": [next(iter(one.values())).logprob for one in output.logprobs],
            "top_logprobs": [{} for _ in output.logprobs],
        },
    }


@contextmanager
def serving(folder):
    """A server with a model of its own, and what must be done without a GPU."""
    Handler.llm = LLM(str(folder), seed=0, max_num_seqs=256, logprobs_mode="processed_logprobs")
    VLLMClient.init_communicator = lambda *_, **__: None
    VLLMClient.update_named_params = lambda *told: Handler.llm.weights.load_weights(told[-1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()

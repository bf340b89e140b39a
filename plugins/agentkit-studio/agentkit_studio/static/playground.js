"use strict";
// Sends a message to each conversation and writes what comes back, a JSON object a line, as text.
(() => {
  const chats = document.querySelector(".chats");
  const form = document.getElementById("say");
  if (!chats || !form) return;
  const csrf = document.querySelector("meta[name=csrf]").content;

  const block = (chat, kind, text) => {
    const element = document.createElement("p");
    element.className = kind;
    element.textContent = text;
    const said = chat.querySelector(".said");
    const follows = said.scrollHeight - said.scrollTop - said.clientHeight < 40;
    said.append(element);
    if (follows) said.scrollTop = said.scrollHeight;
    return element;
  };

  const open = new WeakMap(); // the paragraph that text is added to
  const show = (chat, record) => {
    if (record.kind === "text" || record.kind === "thought") {
      const last = open.get(chat);
      if (last && last.className === record.kind) last.append(record.text);
      else open.set(chat, block(chat, record.kind, record.text));
      return;
    }
    open.delete(chat);
    if (record.kind === "end") ended(chat, record);
    else if (record.kind === "result") block(chat, record.ok ? "result" : "result bad", record.text);
    else if (record.kind === "offered") offered(chat, record);
    else block(chat, record.kind, record.text);
  };

  const offered = (chat, record) => {
    const element = block(chat, "offered", `offered: ${record.text || "no tools"} `);
    if (!record.query) return;
    const why = document.createElement("a"); // the retriever's reasons are on the page of the tools
    why.href = `${chats.dataset.tools}?q=${encodeURIComponent(record.query)}`;
    why.target = "_blank";
    why.textContent = "why these";
    element.append(why);
  };

  const ended = (chat, record) => {
    const cost = record.cost === null ? "" : `, $${record.cost.toFixed(4)}`;
    block(chat, "dim end", `${record.stop_reason}, ${record.tokens} tokens${cost}, ${record.seconds} s, version ${record.version}`);
    if (!record.waits.length) return;
    const waits = block(chat, "waits", record.waits.join("\n"));
    for (const [decision, title] of [["approve", "Approve"], ["reject", "Refuse"]]) {
      const button = document.createElement("button");
      button.textContent = title;
      if (decision === "approve") button.className = "first";
      button.addEventListener("click", () => {
        for (const one of waits.querySelectorAll("button")) one.disabled = true;
        send(chat, chats.dataset.decide, { run: record.run, decision });
      });
      waits.append(" ", button);
    }
  };

  const send = async (chat, address, fields) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    for (const field of chat.querySelectorAll("select, input")) body.set(field.name, field.value);
    body.set("session", chat.dataset.session);
    try {
      const answer = await fetch(address, { method: "POST", body, headers: { "x-csrf": csrf } });
      if (!answer.ok || !answer.body) throw new Error(answer.status === 409 ? "It could not be done; load the page again." : `The studio answered ${answer.status}.`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line) show(chat, JSON.parse(line));
      }
    } catch (error) {
      block(chat, "error", `The connection was lost: ${error.message}`);
    }
    open.delete(chat);
  };

  const field = document.getElementById("text");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    const button = form.querySelector("button");
    if (!text || button.disabled) return;
    field.value = "";
    button.disabled = true;
    const all = [...chats.querySelectorAll(".chat")];
    for (const chat of all) block(chat, "user", text);
    await Promise.all(all.map((chat) => send(chat, chats.dataset.say, { text })));
    button.disabled = false;
    field.focus();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); }
  });
})();

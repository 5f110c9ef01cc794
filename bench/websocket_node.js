// A server on `ws` for bench/doors: answers each ping, and tells every client of each task.submit.
// node websocket_node.js MODULES PORT    MODULES is the folder that has ws
"use strict";

const path = require("path");
const { WebSocketServer } = require(path.join(process.argv[2], "ws"));

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[3]), maxPayload: 1 << 25, backlog: 511 });
let seq = 0;

function broadcast() {
  const params = { taskId: `task-${++seq}`, state: "queued", agent: "shell", attempts: 0, seq };
  const event = JSON.stringify({ jsonrpc: "2.0", method: "event.taskQueued", params });
  for (const client of server.clients) client.send(event);
  return { taskId: params.taskId, state: "queued" };
}

server.on("connection", (client) => {
  client.on("message", (text) => {
    const request = JSON.parse(text);
    const result = request.method === "ping" ? {} : broadcast();
    client.send(JSON.stringify({ jsonrpc: "2.0", id: request.id, result }));
  });
});

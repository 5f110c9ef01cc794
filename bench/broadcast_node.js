// A server on Node's `net` for bench/daemon: answers each request, a line each, and tells every client of it.
// node broadcast_node.js PATH
"use strict";

const net = require("net");
const clients = new Set();
let seq = 0;

function take(socket, line) {
  const request = JSON.parse(line);
  if (request.method === "ping") return socket.write(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: {} }) + "\n");
  const taskId = `task-${++seq}`;
  const params = { taskId, state: "queued", agent: "shell", attempts: 0, seq };
  const event = JSON.stringify({ jsonrpc: "2.0", method: "event.taskQueued", params }) + "\n";
  for (const client of clients) client.write(event);
  socket.write(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: { taskId, state: "queued" } }) + "\n");
}

const server = net.createServer((socket) => {
  let rest = "";
  clients.add(socket);
  socket.setEncoding("utf8");
  socket.on("data", (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) take(socket, line);
  });
  socket.on("error", () => {});
  socket.on("close", () => clients.delete(socket));
});

server.listen(process.argv[2]);

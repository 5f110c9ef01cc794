// In front of a daemon's own `/mcp`, for clients that cannot be given a token: it adds that to each request, and passes on
// everything else as it comes.

'use strict';

const http = require('node:http');
const { LocalServer } = require('./http_adapter.js');

class TokenProxy extends LocalServer {
  constructor(url, token) {
    const { hostname, port } = new URL(url);
    super((request, response) => {
      const headers = [...request.rawHeaders, 'Authorization', `Bearer ${token}`];
      const asked = http.request({ hostname, port, method: request.method, path: request.url, headers, agent: false }, (answer) => {
        response.writeHead(answer.statusCode, answer.rawHeaders);
        answer.pipe(response);
      });
      asked.on('error', () => response.destroy());
      response.on('close', () => asked.destroy());
      request.pipe(asked);
    });
  }
}

module.exports = { TokenProxy };

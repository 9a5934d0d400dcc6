/** An HTTP proxy that sends each request to the next of several servers, and past one that cannot be connected to. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { buffer } from 'node:stream/consumers';

const HOST = '127.0.0.1';

/** @param {readonly number[]} ports of the servers, on this machine */
export async function startBalancer(ports) {
  let next = 0;

  const send = ({ method, url: path, headers }, response, body, port) =>
    new Promise((resolve, reject) => {
      // On a connection of its own: one that was idle may have been closed at the other end, and this process too busy to notice.
      const options = { host: HOST, port, method, path, headers, agent: false };
      const outgoing = request(options, resolve).once('error', reject);
      // The server ends a statement when who asks for it has gone.
      response.once('close', () => outgoing.destroy());
      outgoing.end(body);
    });

  const pass = async (incoming, response) => {
    const body = await buffer(incoming);
    for (let tries = 1; ; tries += 1) {
      next = (next + 1) % ports.length;
      try {
        const upstream = await send(incoming, response, body, ports[next]);
        response.writeHead(upstream.statusCode, upstream.headers);
        // A response that breaks off must not look complete.
        upstream.once('error', () => response.destroy());
        return upstream.pipe(response);
      } catch (error) {
        if (error.code !== 'ECONNREFUSED' || tries === ports.length) return response.destroy();
      }
    }
  };

  const server = createServer((incoming, response) => pass(incoming, response).catch(() => response.destroy()));
  await once(server.listen(0, HOST), 'listening');
  return {
    url: `http://${HOST}:${server.address().port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

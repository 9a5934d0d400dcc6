/** An API behind a proxy that can interfere with its requests. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Runs `work` with an address that passes everything on to the API. The path of each request goes to `interfere` before it is
 * passed on, which may return an answer of its own.
 */
export async function withApiProxy<T>(
  apiUrl: string,
  interfere: (path: string) => Promise<{ status: number; body: unknown } | undefined>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const pass = async ({ url = '', headers }: IncomingMessage, response: ServerResponse) => {
    const send = (status: number, body: string) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
    const own = await interfere(url);
    if (own) return send(own.status, JSON.stringify(own.body));
    const version = headers['svc-version'];
    const passed = {
      ...{ authorization: headers.authorization ?? '' },
      ...(typeof version === 'string' && { 'svc-version': version }),
    };
    const answer = await fetch(`${apiUrl}${url}`, { headers: passed });
    return send(answer.status, await answer.text());
  };
  const proxy = createServer((request, response) => void pass(request, response)).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  try {
    return await work(`http://127.0.0.1:${port}`);
  } finally {
    proxy.close();
  }
}

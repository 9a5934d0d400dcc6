/** An HTTP server in the test's process, which gives the responses that a test wants. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { afterEach } from '@jest/globals';
import { listening } from './listening.js';

export type Respond = (response: ServerResponse, body: string) => void;

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Gives each request the next of the responses, and after those the last. It is closed after the test, or by `stop`. */
export async function serve(...responses: readonly Respond[]) {
  const requests: (IncomingMessage & { readonly body: string })[] = [];
  const server = createServer(async (request, response) => {
    const isGzipped = request.headers['content-encoding'] === 'gzip';
    const body = await text(isGzipped ? request.pipe(createGunzip()) : request);
    requests.push(Object.assign(request, { body }));
    (responses[requests.length - 1] ?? responses.at(-1))?.(response, body);
  });
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  stops.push(stop);
  return { url: await listening(server), requests, stop };
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Respond {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

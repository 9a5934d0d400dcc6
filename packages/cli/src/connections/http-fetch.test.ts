import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, it } from '@jest/globals';
import { MeterlineClient } from '@meterline/client';
import { failureOf } from '../../../../test/failure.js';
import { httpFetch } from './http-fetch.js';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function serve(respond: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function clientOf(baseUrl: string, timeout = 60_000): MeterlineClient {
  return new MeterlineClient({ baseUrl, credential: 'secret', fetch: httpFetch, retries: 0, timeout });
}

const DIMENSIONS = ['workspace', 'resource_name'];
const ANSWER = JSON.stringify({ values: DIMENSIONS });

it('asks for a compressed answer, and reads it', async () => {
  const url = await serve(({ headers }, response) => {
    expect(headers).toMatchObject({ 'accept-encoding': 'gzip', authorization: 'Bearer secret' });
    const parts = [gzipSync(ANSWER).subarray(0, 20), gzipSync(ANSWER).subarray(20)];
    response.writeHead(200, { 'content-encoding': 'gzip' }).write(parts[0]);
    setImmediate(() => response.end(parts[1]));
  });
  expect(await clientOf(url).groupByDimensions('acme')).toEqual(DIMENSIONS);
});

it('reads characters that arrive in two parts', async () => {
  const url = await serve((_request, response) => {
    const content = Buffer.from('{"code":404,"error":"not_found","message":"no é","requestId":"r-1"}');
    response.writeHead(404).write(content.subarray(0, content.indexOf('é') + 1));
    setImmediate(() => response.end(content.subarray(content.indexOf('é') + 1)));
  });
  expect(await failureOf(clientOf(url).accounts())).toMatchObject({ status: 404, message: 'no é', requestId: 'r-1' });
});

it('sends a body, and headers of the answer are found by name', async () => {
  const url = await serve(async (request, response) => {
    const parts: string[] = [];
    for await (const part of request.setEncoding('utf8')) parts.push(part);
    response
      .writeHead(503, { 'X-Request-Id': request.headers['content-type'], 'Retry-After': '7' })
      .end(parts.join(''));
  });
  expect(await failureOf(clientOf(url).createApiKey('ci', { role: 'member' }))).toMatchObject({
    code: 'unexpected_answer',
    requestId: 'application/json',
    retryAfter: 7,
  });
});

it.each([301, 302, 307, 308])('follows a redirection with %d, and shows its key to no other host', async (status) => {
  const elsewhere = await serve(({ headers: { authorization = 'none' } }, response) => {
    response.end(JSON.stringify({ values: authorization === 'none' ? DIMENSIONS : [] }));
  });
  const url = await serve(({ url: path }, response) => {
    response.writeHead(status, { location: `${elsewhere}${path}` }).end();
  });
  expect(await clientOf(url).groupByDimensions('acme')).toEqual(DIMENSIONS);
});

it.each([
  ['before the answer', () => undefined],
  ['within the answer', (_request: unknown, response: ServerResponse) => response.writeHead(200).write('{"values":')],
])('a time that is over %s ends the call', async (_, respond) => {
  const url = await serve(respond);
  expect(await failureOf(clientOf(url, 100).accounts())).toMatchObject({
    message: `The API at ${url} did not answer within 0.1 s.`,
    cause: { name: 'TimeoutError' },
  });
});

it('an answer that breaks off, and an address where nobody listens, have the code of the system', async () => {
  const url = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"values":');
    setImmediate(() => response.destroy());
  });
  expect(await failureOf(clientOf(url).accounts())).toMatchObject({ cause: { code: 'ECONNRESET' } });
  for (const stop of stops.splice(0)) stop();
  expect(await failureOf(clientOf(url).accounts())).toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

/** The API under bytes that HTTP forbids: well-formed requests with bytes changed, left out, doubled or moved. */
import * as fc from 'fast-check';
import type { Product } from '../harness/product.js';
import { HttpClient } from './http-client.js';
import { holds, watchMemory } from './run.js';

const LANES = 8;
const MEMORY_BOUND_MIB = 300;
const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) /gm;
/** What RFC 9110 has for a method that a server does not know, and for a version that it does not speak. */
const OF_HTTP_ITSELF = [501, 505];

const request: fc.Arbitrary<string> = fc.constantFrom(
  'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'GET /v0/accounts?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n',
  'POST /v0/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
  'POST /v0/accounts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  'GET http://other.example/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /healthz HTTP/1.0\r\n\r\n',
  'FOO /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
);
const inserted: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...'\r|\n|\r\n|\0| |\t|:|\x7f|\xff|%|/|\r\n\r\n|HTTP/1.1|0\r\n\r\n'.split('|')),
  fc.constantFrom(1, 100, 60_000).map((times) => 'x'.repeat(times)),
);
/** Between two bytes: some text comes in, some bytes go or come twice, or all that follows is missing. */
const change = fc.record({ at: fc.nat(150), text: inserted, skip: fc.integer({ min: -20, max: 8 }), cut: fc.nat(9) });
const nearlyHttp = fc.tuple(request, fc.array(change, { maxLength: 4 })).map(([text, changes]) =>
  changes.reduce<string>((sent, { at, text: added, skip, cut }) => {
    const from = Math.min(at, sent.length);
    return sent.slice(0, from) + (cut === 0 ? '' : added + sent.slice(Math.max(0, from + skip)));
  }, text),
);

export async function fuzzBytes(product: Product, count: number): Promise<void> {
  const query = await product.startQuery();
  const client = new HttpClient(query.url, LANES);
  const memory = watchMemory(query.pid, MEMORY_BOUND_MIB);
  await holds(nearlyHttp, { count, lanes: LANES }, async (text) => {
    const response = await client.sendBytes(Buffer.from(text, 'latin1'));
    for (const [, digits] of response.matchAll(STATUS_LINE)) {
      const status = Number(digits);
      if (status >= 500 && !OF_HTTP_ITSELF.includes(status)) throw new Error(`status ${status}`);
    }
  });
  client.close();
  memory();
}

/** Requests that HTTP forbids: well-formed ones with bytes changed, left out, doubled or moved. */
import type { SeededRandom } from '../faults/seeded-random.js';

const HOSTILE_BYTES = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  '\x7f',
  '\xff',
  '%',
  '/',
  '\r\n\r\n',
  'HTTP/1.1',
  '0\r\n\r\n',
];

const SEEDS: readonly string[] = [
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
];

export function byteCase(random: SeededRandom): Buffer {
  let text = random.pick(SEEDS);
  for (let changes = random.integer(0, 4); changes > 0; changes -= 1) text = changed(random, text);
  return Buffer.from(text, 'latin1');
}

function changed(random: SeededRandom, text: string): string {
  const at = random.integer(0, text.length);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  switch (random.integer(1, 5)) {
    case 1:
      return before + random.pick(HOSTILE_BYTES) + after;
    case 2:
      return before + after.slice(random.integer(1, 8));
    case 3:
      return before + after.slice(0, 20) + after;
    case 4:
      return `${before}${'x'.repeat(random.pick([1, 100, 60_000]))}${after}`;
    default:
      return before;
  }
}

/** Issue: the edges of HTTP, point 11. Also test/contract/http.test.ts and page.test.ts. */
import { z } from 'zod';
import type { Attack } from './attack.js';
import { HttpClient, type RequestCase } from './http-client.js';
import { PATIENCE_MS } from './waiting.js';

/** Bytes; an error may repeat what was sent, once. */
const LONGEST_ERROR = 2_048;
const LONGEST_LINE = 4_096;
const LONG = 20_000;

const TARGETS = [
  ...['/assets/.', '/assets/..', '/assets/./.', '/assets/%2e', '/assets/%2e%2e', '/assets/%00', '/assets/a%00b'],
  ...['/assets/%2f', '/assets/%5c', '/assets/..%2f..%2fpackage.json', '/assets//', '/assets/%ff', '/%00', '/./', '/..'],
  ...[`/${'a'.repeat(LONG)}`, `/v0/accounts/${'b'.repeat(LONG)}/metrics`, `/v0/accounts?${'c'.repeat(LONG)}=`],
  ...[`/v0/accounts?${'d=&'.repeat(LONG / 3)}`, `/assets/${'e'.repeat(LONG)}`],
];
const HEADERS: readonly RequestCase['headers'][] = [
  {},
  { 'if-match': '"x"' },
  { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
  { range: 'bytes=999999999-' },
  { range: 'bytes=5-1,x' },
  { 'x-request-id': 'f'.repeat(LONG) },
];
const METHODS = ['GET', 'HEAD', 'POST'];

const errorSchema = z.object({ error: z.string() });

export const edgesAttack: Attack = {
  name: 'edges',
  what: 'dots, NULs and endless names in paths, conditions and ranges, CONNECT',
  run: async ({ site, findings }) => {
    const query = await site.startQuery();
    const client = new HttpClient(query.url, { connections: 8, patienceMs: PATIENCE_MS });
    let sent = 0;
    try {
      for (const target of [...TARGETS, '/']) {
        for (const headers of HEADERS) {
          for (const method of METHODS) {
            const { status, text } = await client.send({ method, target, headers });
            sent += 1;
            const example = `${method} ${target.slice(0, 60)} ${Object.keys(headers)}: ${status} ${text.slice(0, 200)}`;
            if (status >= 500) findings.add(`status ${status}`, example);
            if (status < 400) continue;
            if (text.length > LONGEST_ERROR + target.length)
              findings.add('an error is longer than what it tells', example);
            const { error } = errorSchema.safeParse(parsed(text)).data ?? {};
            if (method === 'GET' && error === 'invalid_body')
              findings.add('a request without a body has an invalid one', example);
          }
        }
      }
      for (const line of ['CONNECT a:443 HTTP/1.1', 'CONNECT / HTTP/1.1', 'CONNECT * HTTP/1.1']) {
        const text = await client.sendBytes(Buffer.from(`${line}\r\nHost: x\r\n\r\n`), { halfClosed: false });
        sent += 1;
        if (!/^HTTP\/1\.1 4\d\d /.test(text)) findings.add('CONNECT is not refused', `${line}: ${text.slice(0, 200)}`);
      }
      const longest = Math.max(
        ...query
          .log()
          .split('\n')
          .map((line) => line.length),
      );
      if (longest > LONGEST_LINE) findings.add(`a line of the log has ${longest} characters`);
      return {
        sent: `${sent} requests`,
        stood: `no error above ${LONGEST_ERROR} bytes and the request; the longest line of the log: ${longest}`,
      };
    } finally {
      client.close();
      await query.kill();
    }
  },
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

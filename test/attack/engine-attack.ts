/** Issue: the embedded ClickHouse is open to every user and web page. Also local-stack/src/engine/confinement.test.ts. */
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Attack, Attacked } from './attack.js';
import { HttpClient, type RequestCase } from './http-client.js';
import { PATIENCE_MS } from './waiting.js';

const SECRET = 'the admin key of this machine';
const PATHS = [
  '/',
  '/?user=default',
  '/?us%65r=default&password=',
  '/?user=meterline',
  '/play',
  '/dashboard',
  '/replicas_status',
];

export const engineAttack: Attack = {
  name: 'engine',
  what: 'requests to the embedded ClickHouse as other users of the machine and web pages can send them',
  run: async ({ site, findings }: Attacked) => {
    const [secret, written] = [join(site.directory, 'keys.json'), join(site.directory, 'written')];
    await writeFile(secret, SECRET, { mode: 0o600 });
    const { url, user, password } = site.clickhouse;
    const basic = (name: string, word: string) => `Basic ${Buffer.from(`${name}:${word}`).toString('base64')}`;
    const own = { authorization: basic(user, password) };
    const nobody = [
      {},
      { authorization: basic('default', '') },
      { authorization: basic(user, '') },
      { authorization: basic(user, `${password}x`) },
      { authorization: basic('ingest', password) },
      { 'x-clickhouse-user': 'default' },
      { 'x-clickhouse-user': user, 'x-clickhouse-key': 'x' },
    ];
    const foreign = [
      { origin: 'https://example.com' },
      { origin: 'null' },
      { origin: url },
      { host: 'example.com' },
      { host: `localhost.example.com:${new URL(url).port}` },
    ];
    const statements = [
      `SELECT * FROM file('${secret}', LineAsString)`,
      `INSERT INTO FUNCTION file('${written}', LineAsString) VALUES ('x')`,
      'SELECT 1',
      'SHOW TABLES FROM meterline',
    ];
    const strangers = [...nobody, ...foreign.flatMap((page) => [page, { ...page, ...own }])];
    const cases = strangers.flatMap((headers) =>
      PATHS.flatMap((target) => statements.flatMap((statement) => requestsOf(statement, target, headers))),
    );
    const client = new HttpClient(url, { connections: 8, patienceMs: PATIENCE_MS });
    try {
      for (const sent of cases) {
        const { status, text } = await client.send(sent);
        const example = `${sent.method} ${sent.target} ${JSON.stringify(sent.headers)}: ${text.slice(0, 200)}`;
        if (status !== 401 && status !== 403) findings.add(`an answer is ${status}`, example);
        if (text.includes(SECRET)) findings.add('a file was read', example);
      }
      if (await exists(written)) findings.add('a file was written');
      return { sent: `${cases.length} requests`, stood: 'all refused with 401 or 403' };
    } finally {
      client.close();
    }
  },
};

function requestsOf(statement: string, target: string, headers: RequestCase['headers']): RequestCase[] {
  const query = `${target}${target.includes('?') ? '&' : '?'}query=${encodeURIComponent(statement)}`;
  return [
    { method: 'POST', target, headers: { ...headers, 'content-type': 'text/plain' }, body: Buffer.from(statement) },
    { method: 'GET', target: query, headers },
  ];
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Checks what "npm run test:containers" does not reach: the Dockerfile, the compose files and the files that they use agree. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { NODE_OPTIONS } from '@meterline/local-stack';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const text = (file: string) => readFile(`${ROOT}${file}`, 'utf8');

const manifestSchema = z.object({ dependencies: z.record(z.string(), z.string()).default({}) });
const composeSchema = z.object({
  services: z.record(
    z.string(),
    z.object({
      environment: z.record(z.string(), z.string().nullable()).default({}),
      volumes: z.array(z.string()).default([]),
      depends_on: z.record(z.string(), z.unknown()).optional(),
    }),
  ),
});

const dockerfile = await text('Dockerfile');
const servicesOf = async (file: string) => composeSchema.parse(parse(await text(file), { merge: true })).services;
const [single, cluster] = [await servicesOf('docker-compose.yml'), await servicesOf('docker-compose.cluster.yml')];

/** The folders of Meterline's packages that a package needs at run time, including its own. */
async function foldersOf(folder: string): Promise<Set<string>> {
  const { dependencies } = manifestSchema.parse(JSON.parse(await text(`${folder}/package.json`)));
  const own = Object.keys(dependencies).filter((name) => name.startsWith('@meterline/'));
  const nested = await Promise.all(own.map((name) => foldersOf(name.replace('@meterline/', 'packages/'))));
  return new Set([folder, ...nested.flatMap((folders) => [...folders])]);
}

it.each(['services/ingest', 'services/query', 'services/collector', 'services/alerts'])(
  'the Dockerfile copies each package that %s needs, and the embedded engine is none of them',
  async (image) => {
    const folders = await foldersOf(image);
    expect(folders).not.toContain('packages/local-stack');
    expect(folders).not.toContain('packages/cli');
    for (const folder of folders) {
      expect(dockerfile).toContain(`COPY ${folder}/package.json ${folder}/\n`);
      expect(dockerfile).toContain(`COPY --from=build /app/${folder}/dist ${folder}/dist\n`);
    }
  },
);

it.each(['ingest', 'collector'] as const)('the Dockerfile gives %s the options that npm start gives it', (name) => {
  expect(dockerfile).toContain(
    `ENV NODE_OPTIONS="${NODE_OPTIONS[name]}"\nCMD ["node", "services/${name}/dist/main.js"]\n`,
  );
});

it.each([
  ...[['ingest', 'worker', 'ingest'] as const, ['query', 'query', 'query'] as const],
  ...[['collector', 'collector', undefined] as const, ['alerts', 'alerts', 'query'] as const],
  ...[['cli', 'operator', 'operator'] as const, ['migrate', undefined, 'migrate'] as const],
])('docker-compose.yml gives %s the user %s of Redis and %s of ClickHouse', (service, redis, clickhouse) => {
  const { REDIS_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD } = single[service]?.environment ?? {};
  expect(REDIS_URL).toBe(redis && `redis://${redis}:\${REDIS_${redis.toUpperCase()}_PASSWORD}@redis:6379`);
  expect(CLICKHOUSE_USER).toBe(clickhouse);
  expect(CLICKHOUSE_PASSWORD).toBe(clickhouse && `\${CLICKHOUSE_${clickhouse.toUpperCase()}_PASSWORD}`);
});

it('redis/start.sh replaces the password of each user of redis/users.conf', async () => {
  const users = [...(await text('redis/users.conf')).matchAll(/^user \w+ on >(\w+)_PASSWORD /gm)];
  const [, replaced = ''] = /for user in ([A-Z ]+); do/.exec(await text('redis/start.sh')) ?? [];
  expect(replaced.split(' ')).toEqual(users.map(([, user]) => user));
});

it.each(['query', 'collector'])('docker-compose.yml passes each variable about callers to %s', async (program) => {
  const rows = [...(await text('docs/configuration.md')).matchAll(/^\| `(\w+)` \|[^|]*\| ([^|]*) \|/gm)];
  const read = rows.flatMap(([, name = '', by = '']) => (by.split(', ').includes(program) ? [name] : []));
  const wanted = read.filter((name) => /^AUTH_|^CORS|^TRUST|^PUBLIC|^FRAME/.test(name));
  expect(wanted.length).toBeGreaterThan(8);
  expect(Object.keys(single[program]?.environment ?? {})).toEqual(expect.arrayContaining(wanted));
});

it.each([
  ['PRICE_BOOK', ['ingest', 'collector', 'cli']],
  ['CATALOG', ['ingest', 'query', 'collector', 'cli']],
])('docker-compose.yml gives the file %s to every program that reads it', async (name, expected) => {
  const rows = [...(await text('docs/configuration.md')).matchAll(/^\| `(\w+)` \|[^|]*\| ([^|]*) \|/gm)];
  const readers = rows.find(([, variable]) => variable === name)?.[2] ?? '';
  const programs = readers.split(', ').map((program) => (program === 'meterline' ? 'cli' : program));
  expect(programs).toEqual(expected);
  for (const program of programs) {
    const { environment, volumes } = single[program] ?? {};
    const folder = './docker/price-books:/etc/meterline/price-books:ro';
    expect([program, environment?.[name], volumes]).toEqual([program, `\${${name}:-}`, [folder]]);
  }
});

it('docker-compose.cluster.yml has the hosts of clickhouse/cluster, each with its own data, and every client knows all', async () => {
  const configuration = await text('clickhouse/cluster/hosts/cluster.xml');
  const shards = [...configuration.matchAll(/<shard>\s*<internal.*?<\/shard>/gs)].map(([shard]) =>
    [...shard.matchAll(/<host>([^<]+)</g)].map(([, host = '']) => host),
  );
  const hosts = shards.flat();
  expect(Object.keys(cluster).filter((name) => name.startsWith('clickhouse'))).toEqual(hosts);
  const data = new Set<string | undefined>();
  for (const name of hosts) {
    expect(cluster[name]?.environment).toEqual({
      ...{ SHARD: `${shards.findIndex((replicas) => replicas.includes(name)) + 1}`, REPLICA: name },
      CLICKHOUSE_CLUSTER_SECRET: expect.stringMatching(/^\$\{CLICKHOUSE_CLUSTER_SECRET\b/),
    });
    const volumes = [single[name], cluster[name]].flatMap((service) => service?.volumes ?? []);
    expect(volumes).toContain('./clickhouse/cluster/hosts:/etc/clickhouse-server/conf.d:ro');
    data.add(volumes.find((volume) => volume.endsWith(':/var/lib/clickhouse')));
  }
  expect(data.size).toBe(hosts.length);
  const clients = Object.keys(single).filter((name) => single[name]?.environment['CLICKHOUSE_URL'] !== undefined);
  expect(clients).toHaveLength(5);
  for (const name of clients) {
    expect(cluster[name]?.environment).toEqual({
      CLICKHOUSE_URL: hosts.map((host) => `http://${host}:8123`).join(','),
      CLICKHOUSE_CLUSTER: /<remote_servers>\s*<(\w+)>/.exec(configuration)?.[1],
      CLICKHOUSE_INSERT_QUORUM: `${shards[0]?.length}`,
    });
  }
  expect(Object.keys(cluster['migrate']?.depends_on ?? {})).toEqual(hosts);
});

it('docker-compose.cluster.yml has the Keeper at the address and port that the hosts are configured with', async () => {
  const configuration = await text('clickhouse/cluster/hosts/cluster.xml');
  const [, host = '', port] = /<node><host>([^<]+)<\/host><port>(\d+)</.exec(configuration) ?? [];
  expect(cluster[host]?.volumes).toContain('./clickhouse/cluster/keeper:/etc/clickhouse-keeper:ro');
  expect(await text('clickhouse/cluster/keeper/keeper_config.xml')).toContain(`<tcp_port>${port}</tcp_port>`);
});

/**
 * Finds mistakes in the Dockerfile and the compose files where no container engine can be had for test/containers. docker-compose.cluster.yml
 * is not run with replicas (test/containers has one host for each shard): its parts must at least agree with each other.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { NODE_OPTIONS } from '@meterline/local-stack';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const text = (file: string) => readFile(`${ROOT}${file}`, 'utf8');

const [dockerfile, compose] = [await text('Dockerfile'), await text('docker-compose.yml')];
const IMAGES = ['services/ingest', 'services/query', 'services/collector', 'services/alerts', 'packages/cli'];

const manifest = z.object({ dependencies: z.record(z.string(), z.string()).default({}) });

/** The folders of Meterline's packages that a package needs at run time, including its own. */
async function foldersOf(folder: string): Promise<Set<string>> {
  const { dependencies } = manifest.parse(JSON.parse(await text(`${folder}/package.json`)));
  const own = Object.keys(dependencies).filter((name) => name.startsWith('@meterline/'));
  const nested = await Promise.all(own.map((name) => foldersOf(name.replace('@meterline/', 'packages/'))));
  return new Set([folder, ...nested.flatMap((folders) => [...folders])]);
}

it.each(IMAGES)('the Dockerfile copies the manifest and the build of everything that %s needs', async (image) => {
  for (const folder of await foldersOf(image)) {
    expect(dockerfile).toContain(`COPY ${folder}/package.json ${folder}/\n`);
    expect(dockerfile).toContain(`COPY --from=build /app/${folder}/dist ${folder}/dist\n`);
  }
});

it('the Dockerfile builds the web page, and copies it to where the query service looks for it', async () => {
  expect(dockerfile).toMatch(/^RUN .*npx vite build --logLevel warn packages\/dashboard$/m);
  const page = 'packages/dashboard/dist/page';
  expect(dockerfile).toContain(`COPY --from=build /app/${page} ${page}\n`);
  expect(await text('services/query/src/main.ts')).toContain(`'../../../${page}'`);
});

it.each(['ingest', 'collector'] as const)('the Dockerfile runs the %s service as npm start does', (name) => {
  expect(dockerfile).toContain(
    `ENV NODE_OPTIONS="${NODE_OPTIONS[name]}"\nCMD ["node", "services/${name}/dist/main.js"]\n`,
  );
});

it.each(IMAGES)('the Dockerfile does not bring the embedded engine into the image of %s', async (image) => {
  expect(await foldersOf(image)).not.toContain('packages/local-stack');
});

const single = z
  .object({ services: z.record(z.string(), z.object({ environment: z.record(z.string(), z.unknown()).optional() })) })
  .parse(parse(compose, { merge: true })).services;

it('docker-compose.yml gets every secret that it asks for from docker/secrets.sh, and no other', async () => {
  const requested = new Set([...compose.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name));
  const script = await text('docker/secrets.sh');
  const [, names = ''] = /for name in ([\w\s\\]+); do/.exec(script) ?? [];
  const made = [...(names.match(/\w+/g) ?? []).map((name) => `${name}_PASSWORD`), 'CURSOR_SECRET'];
  expect(new Set(made)).toEqual(requested);
});

it('docker-compose.yml gives each service a user of its own in Redis and ClickHouse', () => {
  const variable = (service: string, name: string) => single[service]?.environment?.[name];
  for (const [service, user] of Object.entries({
    ingest: 'worker',
    query: 'query',
    collector: 'collector',
    alerts: 'alerts',
    cli: 'operator',
  })) {
    expect(variable(service, 'REDIS_URL')).toBe(`redis://${user}:\${REDIS_${user.toUpperCase()}_PASSWORD}@redis:6379`);
  }
  for (const [service, user] of Object.entries({
    ingest: 'ingest',
    query: 'query',
    migrate: 'migrate',
    cli: 'operator',
  })) {
    expect(variable(service, 'CLICKHOUSE_USER')).toBe(user);
    expect(variable(service, 'CLICKHOUSE_PASSWORD')).toBe(`\${CLICKHOUSE_${user.toUpperCase()}_PASSWORD}`);
  }
});

it('docker-compose.yml starts Redis with a password of the environment for each user of redis/users.conf', async () => {
  const users = [...(await text('redis/users.conf')).matchAll(/^user \w+ on >(\w+)_PASSWORD /gm)];
  const [, started = ''] = /for user in ([A-Z ]+); do/.exec(await text('redis/start.sh')) ?? [];
  expect(started.split(' ')).toEqual(users.map(([, user]) => user));
});

it.each(['query', 'collector'])('docker-compose.yml gives %s each variable about its callers', async (program) => {
  const rows = [...(await text('docs/configuration.md')).matchAll(/^\| `(\w+)` \|[^|]*\| ([^|]*) \|/gm)];
  const read = rows.flatMap(([, name = '', by = '']) => (by.split(', ').includes(program) ? [name] : []));
  const wanted = read.filter((name) => /^AUTH_|^CORS|^TRUST|^PUBLIC|^FRAME/.test(name));
  expect(wanted.length).toBeGreaterThan(8);
  expect(Object.keys(single[program]?.environment ?? {})).toEqual(expect.arrayContaining(wanted));
});

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.object({
      extends: z.object({ file: z.string(), service: z.string() }).optional(),
      environment: z.record(z.string(), z.string()),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
      volumes: z.array(z.string()).optional(),
    }),
  ),
  volumes: z.record(z.string(), z.null()),
});

const { services, volumes } = composeFile.parse(parse(await text('docker-compose.cluster.yml'), { merge: true }));
const cluster = await text('clickhouse/cluster/hosts/cluster.xml');

/** The shards of the configuration, each with the names of its hosts. */
const SHARDS = [...cluster.matchAll(/<shard>\s*<internal.*?<\/shard>/gs)].map(([shard]) =>
  [...shard.matchAll(/<host>([^<]+)<\/host>/g)].map(([, host]) => host ?? ''),
);
const HOSTS = SHARDS.flat();
const CLIENTS = Object.keys(single).filter((name) => single[name]?.environment?.['CLICKHOUSE_URL'] !== undefined);

it('docker-compose.cluster.yml has the hosts of the configuration, each as its own replica of its shard', () => {
  expect(SHARDS.map(({ length }) => length)).toEqual([2, 2]);
  const hosts = Object.keys(services).filter((name) => name.startsWith('clickhouse'));
  expect(hosts).toEqual(HOSTS);
  for (const [index, names] of SHARDS.entries()) {
    for (const name of names) {
      expect(services[name]?.environment).toMatchObject({ SHARD: String(index + 1), REPLICA: name });
      expect(services[name]?.volumes).toContain('./clickhouse/cluster/hosts:/etc/clickhouse-server/conf.d:ro');
    }
  }
});

it('docker-compose.cluster.yml gives each host data of its own, and what the one of docker-compose.yml has', () => {
  for (const name of HOSTS.slice(1)) {
    expect(services[name]?.extends).toEqual({ file: 'docker-compose.yml', service: 'clickhouse' });
    expect(services[name]?.volumes).toContain(`${name}-data:/var/lib/clickhouse`);
  }
  const own = Object.values(services).flatMap((service) => service.volumes ?? []);
  const named = own.map((volume) => volume.split(':')[0] ?? '').filter((volume) => !volume.startsWith('.'));
  expect(Object.keys(volumes).sort()).toEqual(named.sort());
});

it('docker-compose.cluster.yml adds to services of docker-compose.yml, which have every host and wait for all replicas of a shard', () => {
  expect(CLIENTS).toContain('ingest');
  for (const name of CLIENTS) {
    expect(services[name]?.environment).toEqual({
      CLICKHOUSE_URL: HOSTS.map((host) => `http://${host}:8123`).join(','),
      CLICKHOUSE_CLUSTER: /<remote_servers>\s*<(\w+)>/.exec(cluster)?.[1],
      CLICKHOUSE_INSERT_QUORUM: String(SHARDS[0]?.length),
    });
  }
  expect(Object.keys(services['migrate']?.depends_on ?? {})).toEqual(HOSTS);
});

it('docker-compose.cluster.yml sets every variable that the configuration takes from the environment', () => {
  const taken = [...cluster.matchAll(/from_env="(\w+)"/g)].map(([, name]) => name ?? '');
  for (const name of HOSTS)
    expect(Object.keys(services[name]?.environment ?? {}).sort()).toEqual([...new Set(taken)].sort());
});

it('docker-compose.cluster.yml has the Keeper where the hosts look for it', async () => {
  const [, host = '', port] = /<node><host>([^<]+)<\/host><port>(\d+)<\/port>/.exec(cluster) ?? [];
  expect(services[host]?.volumes).toContain('./clickhouse/cluster/keeper:/etc/clickhouse-keeper:ro');
  expect(await text('clickhouse/cluster/keeper/keeper_config.xml')).toContain(`<tcp_port>${port}</tcp_port>`);
});

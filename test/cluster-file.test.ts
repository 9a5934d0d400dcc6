/** docker-compose.cluster.yml is not run with replicas (test/containers has one host for each shard). Its parts must at least agree with each other. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

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

const text = (file: string) => readFile(`${ROOT}${file}`, 'utf8');
const { services, volumes } = composeFile.parse(parse(await text('docker-compose.cluster.yml'), { merge: true }));
const single = z
  .object({ services: z.record(z.string(), z.object({ environment: z.looseObject({}).optional() })) })
  .parse(parse(await text('docker-compose.yml'), { merge: true })).services;
const cluster = await text('clickhouse/cluster/hosts/cluster.xml');

/** The shards of the configuration, each with the names of its hosts. */
const SHARDS = [...cluster.matchAll(/<shard>\s*<internal.*?<\/shard>/gs)].map(([shard]) =>
  [...shard.matchAll(/<host>([^<]+)<\/host>/g)].map(([, host]) => host ?? ''),
);
const HOSTS = SHARDS.flat();
const CLIENTS = Object.keys(single).filter((name) => single[name]?.environment?.['CLICKHOUSE_URL'] !== undefined);

it.each(['query', 'collector'])(
  'docker-compose.yml gives %s each variable that says who calls it, and how',
  async (program) => {
    const rows = [...(await text('docs/configuration.md')).matchAll(/^\| `(\w+)` \|[^|]*\| ([^|]*) \|/gm)];
    const read = rows.flatMap(([, name = '', by = '']) => (by.split(', ').includes(program) ? [name] : []));
    const wanted = read.filter((name) => /^AUTH_|^CORS|^TRUST|^PUBLIC|^FRAME/.test(name));
    expect(wanted.length).toBeGreaterThan(8);
    expect(Object.keys(single[program]?.environment ?? {})).toEqual(expect.arrayContaining(wanted));
  },
);

describe('docker-compose.cluster.yml', () => {
  it('has the hosts of the configuration, each as its own replica of its shard', () => {
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

  it('gives each host data of its own, and what the one of docker-compose.yml has', () => {
    for (const name of HOSTS.slice(1)) {
      expect(services[name]?.extends).toEqual({ file: 'docker-compose.yml', service: 'clickhouse' });
      expect(services[name]?.volumes).toContain(`${name}-data:/var/lib/clickhouse`);
    }
    const own = Object.values(services).flatMap((service) => service.volumes ?? []);
    const named = own.map((volume) => volume.split(':')[0] ?? '').filter((volume) => !volume.startsWith('.'));
    expect(Object.keys(volumes).sort()).toEqual(named.sort());
  });

  it('adds to services of docker-compose.yml, which have every host and wait for all replicas of a shard', () => {
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

  it('sets every variable that the configuration takes from the environment', () => {
    const taken = [...cluster.matchAll(/from_env="(\w+)"/g)].map(([, name]) => name ?? '');
    for (const name of HOSTS)
      expect(Object.keys(services[name]?.environment ?? {}).sort()).toEqual([...new Set(taken)].sort());
  });

  it('has the Keeper where the hosts look for it', async () => {
    const [, host = '', port] = /<node><host>([^<]+)<\/host><port>(\d+)<\/port>/.exec(cluster) ?? [];
    expect(services[host]?.volumes).toContain('./clickhouse/cluster/keeper:/etc/clickhouse-keeper:ro');
    expect(await text('clickhouse/cluster/keeper/keeper_config.xml')).toContain(`<tcp_port>${port}</tcp_port>`);
  });
});

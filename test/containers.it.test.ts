/** Finds mistakes in the Dockerfile and docker-compose.yml where no container engine can be had for test/containers. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { NODE_OPTIONS } from '@meterline/local-stack';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const IMAGES = ['services/ingest', 'services/query', 'services/collector', 'services/alerts', 'packages/cli'];

const manifest = z.object({ dependencies: z.record(z.string(), z.string()).default({}) });

/** The folders of Meterline's packages that a package needs at run time, including its own. */
async function foldersOf(folder: string): Promise<Set<string>> {
  const { dependencies } = manifest.parse(JSON.parse(await readFile(`${ROOT}${folder}/package.json`, 'utf8')));
  const own = Object.keys(dependencies).filter((name) => name.startsWith('@meterline/'));
  const nested = await Promise.all(own.map((name) => foldersOf(name.replace('@meterline/', 'packages/'))));
  return new Set([folder, ...nested.flatMap((folders) => [...folders])]);
}

describe('the Dockerfile', () => {
  it.each(IMAGES)('copies the manifest and the build of everything that %s needs', async (image) => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    for (const folder of await foldersOf(image)) {
      expect(dockerfile).toContain(`COPY ${folder}/package.json ${folder}/\n`);
      expect(dockerfile).toContain(`COPY --from=build /app/${folder}/dist ${folder}/dist\n`);
    }
  });

  it('builds the web page, and copies it to where the query service looks for it', async () => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    expect(dockerfile).toMatch(/^RUN .*npx vite build --logLevel warn packages\/dashboard$/m);
    const page = 'packages/dashboard/dist/page';
    expect(dockerfile).toContain(`COPY --from=build /app/${page} ${page}\n`);
    expect(await readFile(`${ROOT}services/query/src/main.ts`, 'utf8')).toContain(`'../../../${page}'`);
  });

  it.each(['ingest', 'collector'] as const)('runs the %s service as npm start does', async (name) => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    expect(dockerfile).toContain(
      `ENV NODE_OPTIONS="${NODE_OPTIONS[name]}"\nCMD ["node", "services/${name}/dist/main.js"]\n`,
    );
  });

  it.each(IMAGES)('does not bring the embedded engine into the image of %s', async (image) => {
    expect(await foldersOf(image)).not.toContain('packages/local-stack');
  });
});

const secrets = z.object({
  services: z.record(z.string(), z.object({ environment: z.record(z.string(), z.unknown()).optional() })),
});

describe('docker-compose.yml', () => {
  it('gets every secret that it asks for from docker/secrets.sh, and no other', async () => {
    const compose = await readFile(`${ROOT}docker-compose.yml`, 'utf8');
    const asked = new Set([...compose.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name));
    const script = await readFile(`${ROOT}docker/secrets.sh`, 'utf8');
    const [, names = ''] = /for name in ([\w\s\\]+); do/.exec(script) ?? [];
    const made = [...(names.match(/\w+/g) ?? []).map((name) => `${name}_PASSWORD`), 'CURSOR_SECRET'];
    expect(new Set(made)).toEqual(asked);
  });

  it('gives each service a user of its own in Redis and ClickHouse', async () => {
    const { services } = secrets.parse(parse(await readFile(`${ROOT}docker-compose.yml`, 'utf8'), { merge: true }));
    const variable = (service: string, name: string) => services[service]?.environment?.[name];
    for (const [service, user] of Object.entries({
      ingest: 'worker',
      query: 'query',
      collector: 'collector',
      alerts: 'alerts',
      cli: 'operator',
    })) {
      expect(variable(service, 'REDIS_URL')).toBe(
        `redis://${user}:\${REDIS_${user.toUpperCase()}_PASSWORD}@redis:6379`,
      );
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

  it('starts Redis with a password of the environment for each user of redis/users.conf', async () => {
    const users = [...(await readFile(`${ROOT}redis/users.conf`, 'utf8')).matchAll(/^user \w+ on >(\w+)_PASSWORD /gm)];
    const [, started = ''] = /for user in ([A-Z ]+); do/.exec(await readFile(`${ROOT}redis/start.sh`, 'utf8')) ?? [];
    expect(started.split(' ')).toEqual(users.map(([, user]) => user));
  });
});

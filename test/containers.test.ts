/** Finds mistakes in the Dockerfile that would keep an image from starting, because no container engine runs here. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { NODE_OPTIONS } from '@meterline/local-stack';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const IMAGES = ['services/ingest', 'services/query', 'services/collector', 'packages/cli'];

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

  it.each([
    ['query', 'collector'],
    ['collector', 'cli'],
  ])('builds the web page, and copies it to where the %s service looks for it', async (service, next) => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    expect(dockerfile).toMatch(/^RUN .*node scripts\/build-page\.mjs$/m);
    const image = dockerfile.slice(dockerfile.indexOf(`AS ${service}`), dockerfile.indexOf(`AS ${next}`));
    const page = 'packages/dashboard/dist/page';
    expect(image).toContain(`COPY --from=build /app/${page} ${page}\n`);
    expect(await readFile(`${ROOT}services/${service}/src/start.ts`, 'utf8')).toContain(`'../../../${page}'`);
  });

  it.each(['ingest', 'collector'] as const)('runs the %s service as npm start does', async (name) => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    expect(dockerfile).toContain(
      `ENV NODE_OPTIONS=${NODE_OPTIONS[name]}\nCMD ["node", "services/${name}/dist/main.js"]\n`,
    );
  });

  it.each(IMAGES)('does not bring the embedded engine into the image of %s', async (image) => {
    expect(await foldersOf(image)).not.toContain('packages/local-stack');
  });
});

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.object({
      read_only: z.boolean().optional(),
      user: z.string().optional(),
      cap_drop: z.array(z.string()).optional(),
      security_opt: z.array(z.string()).optional(),
      command: z.array(z.string()).optional(),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
      volumes: z.array(z.string()).optional(),
      ports: z.array(z.string()).optional(),
      environment: z.record(z.string(), z.string()),
    }),
  ),
});

describe('docker-compose.yml', () => {
  const read = async () =>
    composeFile.parse(parse(await readFile(`${ROOT}docker-compose.yml`, 'utf8'), { merge: true })).services;

  it.each(['clickhouse', 'redis', 'migrate', 'ingest', 'query', 'collector', 'cli'])(
    'gives %s no right that it does not need',
    async (name) => {
      const { read_only, user, cap_drop, security_opt } = (await read())[name] ?? {};
      expect({ read_only, cap_drop, security_opt }).toEqual({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
      expect(user).toMatch(/^(node|[1-9]\d*:[1-9]\d*)$/);
    },
  );

  it('gives each service its own user of Redis, whose password takes the place of that in redis/users.conf', async () => {
    const services = await read();
    const users = { ingest: 'worker', query: 'query', collector: 'collector', cli: 'operator' };
    for (const [name, user] of Object.entries(users)) {
      const variable = `REDIS_${user.toUpperCase()}_PASSWORD`;
      expect(services[name]?.environment['REDIS_URL']).toBe(`redis://${user}:\${${variable}}@redis:6379`);
    }
    const script = services['redis']?.command?.at(-1) ?? '';
    const placed = [...script.matchAll(/s\/>(\w+)\/>\$\$REDIS_(\w+)\//g)].map(([, place, variable]) => {
      expect(variable).toBe(place);
      return place;
    });
    const conf = await readFile(`${ROOT}redis/users.conf`, 'utf8');
    expect(placed).toEqual([...conf.matchAll(/^user \w+ on >(\w+) /gm)].map(([, place]) => place));
  });

  it('gives each service its own user of ClickHouse, whose password clickhouse/users.xml takes from the environment', async () => {
    const services = await read();
    const users = { ingest: 'ingest', query: 'query', cli: 'operator', migrate: 'migrate' };
    for (const [name, user] of Object.entries(users)) {
      const { CLICKHOUSE_USER, CLICKHOUSE_PASSWORD } = services[name]?.environment ?? {};
      expect([CLICKHOUSE_USER, CLICKHOUSE_PASSWORD]).toEqual([user, `\${CLICKHOUSE_${user.toUpperCase()}_PASSWORD}`]);
    }
    const { environment = {}, volumes } = services['clickhouse'] ?? {};
    expect(volumes).toContain('./clickhouse/users.xml:/etc/clickhouse-server/users.d/meterline.xml:ro');
    const file = await readFile(`${ROOT}clickhouse/users.xml`, 'utf8');
    const inFile = [...file.matchAll(/<(\w+)>\s*<password from_env="(\w+)"\/>/g)].map(([, user, variable]) => [
      user,
      variable,
    ]);
    expect(inFile).toEqual(
      ['ingest', 'query', 'operator', 'migrate'].map((user) => [user, `CLICKHOUSE_${user.toUpperCase()}_PASSWORD`]),
    );
    for (const [, variable = ''] of inFile) expect(environment[variable]).toMatch(new RegExp(`^\\$\\{${variable}:\\?`));
  });

  it('gives the collector no way to ClickHouse, and publishes it where the page says', async () => {
    const { collector, query } = await read();
    expect(Object.keys(collector?.environment ?? {}).filter((name) => name.startsWith('CLICKHOUSE'))).toEqual([]);
    const { PORT } = collector?.environment ?? {};
    expect(collector?.ports).toEqual([`${PORT}:${PORT}`]);
    expect(query?.environment['COLLECTOR_URL']).toBe(`\${COLLECTOR_URL:-http://localhost:${PORT}}`);
  });

  it('sets every password that it asks for in the commands above it and in the README', async () => {
    const compose = await readFile(`${ROOT}docker-compose.yml`, 'utf8');
    const asked = new Set([...compose.matchAll(/\$\{(\w+)_PASSWORD:\?/g)].map(([, name]) => name));
    for (const text of [compose, await readFile(`${ROOT}README.md`, 'utf8')]) {
      const loop = /for name in ((?:\w+|[\s\\#])+); do/.exec(text)?.[1] ?? '';
      expect(new Set(loop.match(/\w+/g))).toEqual(asked);
    }
  });

  it('migrates before a service starts', async () => {
    const services = await read();
    expect(services['migrate']?.command).toEqual(['migrate']);
    for (const name of ['ingest', 'query', 'cli']) {
      expect(services[name]?.depends_on?.['migrate']).toEqual({ condition: 'service_completed_successfully' });
    }
  });
});

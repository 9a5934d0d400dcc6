/** Finds mistakes in the Dockerfile that would keep an image from starting, because no container engine runs here. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { NODE_OPTIONS } from '@meterline/local-stack';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const IMAGES = ['services/ingest', 'services/query', 'packages/cli'];

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
    expect(dockerfile).toMatch(/^RUN .*node scripts\/build-page\.mjs$/m);
    const query = dockerfile.slice(dockerfile.indexOf('AS query'), dockerfile.indexOf('AS cli'));
    const page = 'packages/dashboard/dist/page';
    expect(query).toContain(`COPY --from=build /app/${page} ${page}\n`);
    expect(await readFile(`${ROOT}services/query/src/start.ts`, 'utf8')).toContain(`'../../../${page}'`);
  });

  it('runs the ingest worker as npm start does', async () => {
    const dockerfile = await readFile(`${ROOT}Dockerfile`, 'utf8');
    expect(dockerfile).toContain(
      `ENV NODE_OPTIONS=${NODE_OPTIONS.ingest}\nCMD ["node", "services/ingest/dist/main.js"]\n`,
    );
  });

  it.each(IMAGES)('does not bring the embedded engine into the image of %s', async (image) => {
    expect(await foldersOf(image)).not.toContain('packages/local-stack');
  });
});

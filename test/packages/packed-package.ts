/** A program outside this repository that uses a package as `npm pack` makes it, without a registry. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
/** What the catalog and the emitter need of others, and the types of `process` and `fetch`: from here, because a test has no registry. */
const FROM_HERE = ['zod', 'date-fns', '@date-fns/utc', 'big.js', '@types/big.js', 'uuid', '@types/node'].map((name) =>
  join(MODULES, name),
);

const run = promisify(execFile);
const packOutput = z.tuple([z.object({ filename: z.string() })]);

export interface PackedPackage {
  /** What the compiler finds in the programs, and in the types of all packages: `wrong.ts(3,7): error TS2322: …`. */
  readonly faults: readonly string[];
  /** What a program prints. */
  run(program: string, settings: Readonly<Record<string, string>>): Promise<string>;
  remove(): Promise<void>;
}

/**
 * Packs the package and the catalog, installs both into an empty folder, and compiles programs there.
 * @param name its folder in `packages`
 * @param programs modules by name, such as `{ question: "import …" }`
 */
export async function installPacked(name: string, programs: Readonly<Record<string, string>>): Promise<PackedPackage> {
  const folder = await mkdtemp(join(tmpdir(), `packed-${name}-`));
  const settings = { HOME: folder, npm_config_offline: 'true', npm_config_cache: join(folder, 'cache') };
  const env = { PATH: process.env['PATH'], ...settings };
  const pack = async (packed: string) => {
    const cwd = join(ROOT, 'packages', packed);
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd, env });
    return packOutput.parse(JSON.parse(stdout))[0];
  };
  const [catalog, own] = await Promise.all([pack('catalog'), pack(name)]);
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const packages = [`./${catalog.filename}`, `./${own.filename}`, ...FROM_HERE];
  await run('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder, env });
  for (const [program, code] of Object.entries(programs)) await writeFile(join(folder, `${program}.ts`), code);
  return {
    faults: await compile(folder, Object.keys(programs)),
    run: async (program, values) => {
      const { stdout } = await run(process.execPath, [`${program}.js`], { cwd: folder, env: { ...env, ...values } });
      return stdout;
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

const STRICT = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--pretty', 'false'];
const PLATFORM = ['--target', 'es2023', '--lib', 'es2023,dom,dom.iterable', '--types', 'node', '--module', 'nodenext'];
const COMPILER = join(MODULES, 'typescript', 'bin', 'tsc');

/** Without `skipLibCheck`, as a program may be that uses the package. */
async function compile(folder: string, programs: readonly string[]): Promise<string[]> {
  const args = [COMPILER, ...STRICT, ...PLATFORM, ...programs.map((name) => `${name}.ts`)];
  const { stdout } = await run(process.execPath, args, { cwd: folder }).catch((error: { stdout: string }) => error);
  return stdout.split('\n').filter((line) => /: error TS/.test(line));
}

/**
 * Checks the packages before they are published: `npm run check:packages`. Each public workspace, and the bundled command, needs a complete
 * manifest, the version of the release, and a tarball with all files that the manifest names. In CI, the script also compares the
 * repository and the tag. Prints each error with the name of its package, and exits with code 1 if there are errors.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const run = promisify(execFile);
const readJson = async (path) => JSON.parse(await readFile(join(ROOT, path), 'utf8'));

const { stdout } = await run('npm', ['query', '.workspace'], { cwd: ROOT });
const workspaces = JSON.parse(stdout).map(({ location }) => location);
await run('npx', ['vite', 'build', '--logLevel', 'warn', 'packages/cli'], { cwd: ROOT });
const packages = await Promise.all(
  [...workspaces, 'packages/cli/dist/package'].map(async (folder) => ({
    folder,
    ...(await readJson(`${folder}/package.json`)),
  })),
);
const published = packages.filter((workspace) => workspace.private !== true);
const { version } = await readJson('package.json');
const changelog = await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8');

const problems = [];
if (!changelog.includes(`\n## ${version}`)) problems.push(`CHANGELOG.md has no section "## ${version}"`);
const { GITHUB_REF_TYPE, GITHUB_REF_NAME, GITHUB_REPOSITORY } = process.env;
if (GITHUB_REF_TYPE === 'tag' && GITHUB_REF_NAME !== `v${version}`) {
  problems.push(`the tag is ${GITHUB_REF_NAME}, but the version is ${version}`);
}
for (const found of await Promise.all(published.map(problemsOf))) problems.push(...found);

for (const problem of problems) console.error(`✗ ${problem}`);
if (problems.length > 0) process.exit(1);
console.log(`✓ ${published.map(({ name }) => `${name}@${version}`).join(', ')}`);

async function problemsOf(manifest) {
  const { folder, name, bin, exports = {}, dependencies = {} } = manifest;
  const found = [];
  const must = (holds, message) => holds || found.push(`${name}: ${message}`);
  for (const field of [
    'description',
    'license',
    'repository',
    'engines',
    ...(bin ? [] : ['types', 'exports', 'files']),
  ]) {
    must(manifest[field], `package.json has no ${field}`);
  }
  must(
    manifest.version === version,
    `its version is ${manifest.version}, but the version of the release is ${version}`,
  );
  must(manifest.publishConfig?.provenance === true, 'publishConfig.provenance is not true');
  must(manifest.publishConfig?.access === 'public', 'publishConfig.access is not "public"');
  const directory = folder.replace('/dist/package', '');
  must(manifest.repository?.directory === directory, `repository.directory is not ${directory}`);
  if (GITHUB_REPOSITORY) {
    const here = `github.com/${GITHUB_REPOSITORY}.git`;
    must(manifest.repository?.url.endsWith(here), `repository.url must end with ${here}, which provenance requires`);
  }
  for (const [other, range] of Object.entries(dependencies)) {
    if (!other.startsWith('@meterline/')) continue;
    must(range === version, `it depends on ${other} ${range} instead of ${version}`);
    must(
      published.some((workspace) => workspace.name === other),
      `it depends on ${other}, which is private`,
    );
  }
  const files = await packedFiles(folder);
  const named = [bin ?? {}, ...Object.values(exports)].flatMap((targets) => Object.values(targets));
  for (const path of ['README.md', 'LICENSE', 'package.json', ...named.map((target) => target.replace('./', ''))]) {
    must(files.includes(path), `its tarball has no ${path}; run npm run build`);
  }
  for (const path of files)
    must(!/\.test\.|tsbuildinfo|tsconfig|\.env/.test(path), `its tarball must not contain ${path}`);
  return found;
}

async function packedFiles(folder) {
  const { stdout: report } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: join(ROOT, folder) });
  return JSON.parse(report)[0].files.map(({ path }) => path);
}

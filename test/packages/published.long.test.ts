/** What would be published is whole, and a release that is not is stopped. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

function check(release: Readonly<Record<string, string>>): Promise<{ stdout: string }> {
  const env = { ...process.env, GITHUB_REF_TYPE: '', GITHUB_REPOSITORY: '', npm_config_offline: 'true', ...release };
  return run(process.execPath, ['scripts/check-packages.mjs'], { cwd: ROOT, env });
}

it('the three packages for other people’s programs can be published, and nothing else', async () => {
  const { stdout } = await check({});
  expect(stdout).toMatch(/^✓ @meterline\/catalog@\S+, @meterline\/client@\S+, @meterline\/emitter@\S+\n$/);
});

it('a release of another version or repository is stopped', async () => {
  const release = { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v99.0.0', GITHUB_REPOSITORY: 'somebody/else' };
  await expect(check(release)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^✗ the tag is v99\.0\.0, .*\n(✗ @meterline\/\w+: repository\.url is not .*\n){3}$/),
  });
});

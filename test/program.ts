/** Programs of the tests that are processes of their own. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * What Node is started with: under jest the bundle that test/setup/program-bundles.mjs has made, elsewhere the source.
 *
 * @param program from the root, such as test/attack/main
 */
export function programArguments(program: string): string[] {
  const { METERLINE_TEST_SERVICES: bundles } = process.env;
  return bundles === undefined ? ['--import', 'tsx', join(ROOT, `${program}.ts`)] : [join(bundles, `${program}.mjs`)];
}

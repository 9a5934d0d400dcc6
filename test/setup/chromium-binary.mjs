/** Finds or installs the browser that the tests of the web page drive. Imports nothing that must be installed or compiled first. */
import { fileURLToPath } from 'node:url';
import { findExecutable, installProgram, isExecutable } from '../../packages/local-stack/src/system-package.js';

const ON_PATH = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'microsoft-edge'];
const ELSEWHERE = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
];
/** By package manager. Homebrew's Chromium starts only after the user has confirmed it. */
const PACKAGE_NAMES = { 'apt-get': 'chromium', dnf: 'chromium', apk: 'chromium' };
const WAY_OUT = 'install Chromium or Chrome so that it is on PATH, or set CHROMIUM_PATH to its executable';

/**
 * The absolute path of a Chromium or Chrome: from CHROMIUM_PATH, on PATH, in a usual place, or else installed now.
 *
 * @param {object} [options]
 * @param {NodeJS.ProcessEnv} [options.env] provides PATH and CHROMIUM_PATH, and is passed to a package manager
 * @param {(line: string) => void} [options.say] called with one line before the machine is changed
 * @returns {Promise<string>}
 * @throws Error whose message says in one line what to do
 */
export async function ensureChromium({ env = process.env, say = () => {} } = {}) {
  const present = await findChromium(env);
  if (present) return present;
  const tool = await installProgram({ program: 'Chromium', names: PACKAGE_NAMES, env, say }).catch((error) => {
    throw new Error(`${error.message}: ${WAY_OUT}.`, { cause: error });
  });
  const installed = tool && (await findChromium(env));
  if (!installed) throw new Error(`The tests of the web page need a browser: ${WAY_OUT}.`);
  return installed;
}

async function findChromium(env) {
  if (env.CHROMIUM_PATH) return env.CHROMIUM_PATH;
  for (const name of ON_PATH) {
    const found = await findExecutable(name, env);
    if (found) return found;
  }
  for (const path of ELSEWHERE) if (await isExecutable(path)) return path;
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await ensureChromium({ say: console.log });
  } catch (error) {
    console.error(`meterline: ${error.message}`);
    process.exitCode = 1;
  }
}

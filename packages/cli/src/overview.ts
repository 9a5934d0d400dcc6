/**
 * The help of the whole command line, and its version, without commander: to load it takes Node as long as everything else that these
 * two need. A test holds them to what commander prints.
 */
import { readFileSync } from 'node:fs';
import { COMMAND_GROUPS } from './command-list.js';

export const DESCRIPTION =
  'Billing metrics: what accounts used and what it cost, and the tools of those who run Meterline.';

export const HELP_END = `
Exit codes: 0 done, 1 failed, 2 wrong usage or settings.
Of commands that ask the API, also: 3 not allowed, 4 not reachable, or asks to come back later.
Of emit, also: 5 some lines were refused, the others sent.`;

type Item = readonly [term: string, description: string];

const OPTIONS: readonly Item[] = [
  ['-V, --version', 'output the version number'],
  ['-h, --help', 'display help for command'],
];
const HELP: Item = ['help [command]', 'display help for command'];
/** Of a file or a pipe. */
const USUAL_WIDTH = 100;

/**
 * What `meterline` prints for these arguments, if they ask for nothing else.
 * @param columns of the terminal; undefined: there is none
 * @returns undefined where commander is needed: for anything else, and on a terminal so narrow that lines must be broken
 */
export function overview(args: readonly string[], columns: number | undefined): string | undefined {
  const [asked, ...others] = args;
  if (others.length > 0) return undefined;
  if (asked === '--version' || asked === '-V') return `${readVersion()}\n`;
  if (asked !== '--help' && asked !== '-h' && asked !== 'help') return undefined;
  const text = helpText();
  const width = Math.max(...text.split('\n').map((line) => line.length));
  return width <= (columns ?? USUAL_WIDTH) ? text : undefined;
}

function helpText(): string {
  const groups = COMMAND_GROUPS.map(({ heading, commands }) => ({
    heading,
    items: commands.map(({ name, summary }): Item => [name, summary]),
  }));
  const lists = [{ heading: 'Options:', items: OPTIONS }, ...groups, { heading: 'Commands:', items: [HELP] }];
  const width = Math.max(...lists.flatMap(({ items }) => items.map(([term]) => term.length)));
  const lines = lists.flatMap(({ heading, items }) => [
    heading,
    ...items.map(([term, description]) => `  ${term.padEnd(width)}  ${description}`),
    '',
  ]);
  const body = ['Usage: meterline [options] [command]', '', DESCRIPTION, '', ...lines].join('\n');
  return `${body}${HELP_END}\n`;
}

/** The version of this package, which is in its manifest and nowhere else. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new TypeError('package.json has no version');
}

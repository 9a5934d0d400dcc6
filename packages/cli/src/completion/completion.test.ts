import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Argument, Command, Option } from 'commander';
import { bashScript } from './bash.js';
import { commandTree } from './command-tree.js';
import { fishScript } from './fish.js';
import { zshScript } from './zsh.js';

function program() {
  const root = new Command('tool');
  const usage = root.command('usage').summary("what it's used: all of it").argument('<file>');
  usage
    .addOption(new Option('--by <name>', 'the [length] (default: day). More').choices(['hour', 'day']))
    .addOption(new Option('--beside [when]', 'the time before').choices(['week', 'year']))
    .option('--book <file>', 'prices')
    .option('--name <text>', 'a name')
    .option('-j, --json', 'as JSON');
  const keys = root.command('keys').summary('keys');
  keys.command('make').addArgument(new Argument('<role>').choices(['admin', 'member']));
  return commandTree(root);
}

/** What bash offers for these words, the last of which the cursor stands in. */
async function offered(...words: string[]): Promise<string[]> {
  const script = `${bashScript(program())}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tool; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['-c', script, 'bash', ...words]);
  return stdout
    .trimEnd()
    .split('\n')
    .filter((word) => word !== '');
}

describe('the tree of a command line', () => {
  it('has what commander shows, each with one line about it', () => {
    const [usage, keys, help] = program().commands;
    expect([usage?.path, keys?.commands.map(({ path }) => path), help?.name]).toEqual([
      'tool usage',
      ['tool keys make', 'tool keys help'],
      'help',
    ]);
    expect([usage?.summary, usage?.argument]).toEqual(["what it's used", 'file']);
    expect(usage?.options.slice(0, 3)).toEqual([
      { name: '--by', description: 'the [length]', takes: 'a value', value: ['hour', 'day'] },
      { name: '--beside', description: 'the time before', takes: 'perhaps a value', value: ['week', 'year'] },
      { name: '--book', description: 'prices', takes: 'a value', value: 'file' },
    ]);
  });
});

describe('bash', () => {
  it.each<[string[], string[]]>([
    [
      ['tool', ''],
      ['usage', 'keys', 'help', '--help'],
    ],
    [['tool', 'us'], ['usage']],
    [['tool', 'keys', 'm'], ['make']],
    [
      ['tool', 'keys', 'make', ''],
      ['admin', 'member', '--help'],
    ],
    [
      ['tool', 'usage', '--b'],
      ['--by', '--beside', '--book'],
    ],
    [
      ['tool', 'usage', '--by', ''],
      ['hour', 'day'],
    ],
    [['tool', 'usage', '--by', '=', 'h'], ['hour']],
    [
      ['tool', 'usage', '--by', '='],
      ['hour', 'day'],
    ],
    [['tool', 'usage', '--name', ''], []],
    [['tool', 'usage', '--name', 'x', '=', ''], []],
    [['tool', 'usage', '--beside', 'w'], ['week']],
    [['tool', 'usage', '--beside', '--j'], ['--json']],
    [['tool', 'usage', '--book', '/etc/host'], ['/etc/hosts']],
    [['tool', 'usage', '/etc/hosts'], ['/etc/hosts']],
  ])('offers for %j %j', async (words, expected) => {
    expect(await offered(...words)).toEqual(expect.arrayContaining(expected));
    if (!words.at(-1)?.startsWith('/')) expect(await offered(...words)).toHaveLength(expected.length);
  });
});

describe('zsh and fish', () => {
  it('have what their own languages ask for', () => {
    const zsh = zshScript(program());
    expect(zsh).toContain(`    'usage:what it'\\''s used'\n`);
    expect(zsh).toContain(`'*--by[the \\[length\\]]:value:(hour day)'`);
    expect(zsh).toContain(`'--beside[the time before]::value:(week year)'`);
    expect(zsh).toContain(`'*--book[prices]:value:_files'`);
    expect(zsh).toContain(`'*:argument:(admin member)'`);
    expect(zsh).toContain('    make) _tool_keys_make ;;');

    const fish = fishScript(program()).split('\n');
    const at = "complete -c tool -n '__tool_at tool usage'";
    expect(fish).toContain("complete -c tool -n '__tool_at tool' -a usage -d 'what it\\'s used'");
    expect(fish).toContain(`${at} -l by -x -a 'hour day' -d 'the [length]'`);
    expect(fish).toContain(`${at} -l beside -a 'week year' -d 'the time before'`);
    expect(fish).toContain(`${at} -l book -r -F -d 'prices'`);
    expect(fish).toContain(`${at} -l json -d 'as JSON'`);
    expect(fish).toContain(`${at} -F`);
    expect(fish).toContain("complete -c tool -n '__tool_at tool keys make' -a 'admin member'");
  });
});

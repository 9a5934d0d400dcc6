/** Help and wrong usage of every command, and the commands that ask no server. */
import { writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, PriceBook } from '@meterline/catalog';
import { nameOf } from '../../packages/cli/src/flags.js';
import { printResult } from '../../packages/cli/src/output/result.js';
import { COMMAND_GROUPS } from '../../packages/cli/src/program.js';
import { writePriceBook } from '../harness/events.js';
import { testFolder } from '../harness/test-folder.js';
import { runCommand } from './run-command.js';

it('every command explains itself and its exit codes', async () => {
  const groups = Object.values(COMMAND_GROUPS).flatMap((commands) => Object.keys(commands));
  const lines = [
    '--help',
    'completion --help',
    'help metrics',
    'help keys create',
    ...groups.map((name) => `${name} --help`),
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await runCommand(line.split(' '));
    const words = line.split(' ').filter((word) => !['help', '--help'].includes(word));
    expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: ${['meterline', ...words].join(' ')} `);
    expect(stdout).toContain('Exit codes: 0 success, 1 failure, 2 invalid flags or settings.');
    expect({ line, hasForms: stdout.includes('--output <format>') }).toEqual({
      line,
      hasForms: stdout.includes('--json'),
    });
    // A time is never shown as milliseconds.
    expect(stdout).not.toMatch(/default: \d{9,}\)/);
    const [, commands = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(stdout) ?? [];
    for (const [, name = ''] of commands.matchAll(/^ {2}([\w-]+) .*\n/gm)) {
      if (name !== 'help') lines.push(`${words.join(' ')} ${name} --help`);
    }
  }
  expect(lines.length).toBeGreaterThan(40);
});

it.each([
  ['', 'Usage: meterline [options] [command]'],
  ['bogus', "unknown command 'bogus'"],
  ['help bogus', "unknown command 'bogus'"],
  ['bogus --help', "unknown command 'bogus'"],
  ['help metricz', "unknown command 'metricz'\n(Did you mean metrics?)"],
  ...['alerts', 'keys', 'queue', 'rejected', 'retention', 'export'].map((group) => [
    group,
    `Usage: meterline ${group} [options]`,
  ]),
  ['completion', "missing required argument 'shell'"],
  ['completion tcsh', 'Allowed choices are'],
  ['metrics --watch --csv', 'leave out CSV'],
  ['metrics --watch 0', 'must be a whole number from 1 to'],
  ['metrics --compare --csv --series', 'leave out --series'],
  ['metrics --compare --from 2100-12-01 --to 2100-12-02', 'the window is in the future'],
  ...['metrics', 'resource-types'].map((command) => [
    `${command} --month 2100-12`,
    '2100-12 has not started yet; choose an earlier month',
  ]),
  [`metrics --account ${'a'.repeat(300)}`, `argument '${'a'.repeat(80)}…' is invalid. It must be 1 to 256 characters`],
  [`estimate ${'a'.repeat(300)}`, `meterline: ${'a'.repeat(80)}… is not <dimension>=<usage>`],
  [`rejected show ${'a'.repeat(300)}`, `meterline: ${'a'.repeat(80)}… is not a rejection ID`],
  ['metrics --month 2026-10 --since 1d', "cannot be used with option '--since"],
  ['metrics --since 1d --from 2026-01-01', "cannot be used with option '--from"],
  ['metrics --filter resourceTyp=agent', 'Valid names: account, workspace, resourceType'],
  ['metrics --filter workspace=', '1 to 256 characters'],
  ['metrics --filter workspace!=', '1 to 256 characters'],
  ['metrics --filter excludeWorkspace!=main', 'must be name=value or name!=value'],
  ['metrics --filter resourceType!=', 'must be 1 to 256 characters'],
  ['metrics --group-by workspace,workspace', 'must name each dimension once'],
  ['metrics --group-by account', 'grouping or filtering by account needs --all-accounts'],
  ['metrics --filter account=acme', 'grouping or filtering by account needs --all-accounts'],
  ['metrics --all-accounts --account acme', "cannot be used with option '--account"],
  ['metrics --since 1d --cursor x', '--cursor needs the window of its response'],
  ['metrics --account ..', 'the account from --account cannot be "..'],
  ['accounts --output json --json', "option '--output <format>' cannot be used with option '--json'"],
  ['accounts --output xml', 'Allowed choices are table, json, csv'],
  ['metrics --json --csv --api-url http://127.0.0.1:1', "option '--json' cannot be used with option '--csv [variant]'"],
  ['estimate', 'specify either usage, as <dimension>=<usage>, or --file'],
  ['dimensions --at 2026-01-01', '--at needs --book: the API returns only the prices in force now'],
  ['estimate --book a.json --api-url http://127.0.0.1:1', "cannot be used with option '--api-url <url>'"],
  ...['dimensions', 'estimate agent_async_requests_count=1'].map((line) => [
    `${line} --api-url http://127.0.0.1:1`,
    'http://127.0.0.1:1 (from --api-url); run "meterline login", set METERLINE_API_KEY, or use --book <file>',
  ]),
  ['alerts create --period month', "required option '--name <name>' not specified"],
  ['alerts create --period week', 'Allowed choices are day, month'],
  ['alerts create --threshold 0', 'must be a whole number from 1 to 1000'],
  ['alerts create --format discord', 'Allowed choices are standard, slack, teams'],
  ['alerts create --forecast 0', 'must be a whole number from 1 to 1000'],
  ['alerts show', "missing required argument 'alertId'"],
  ['keys create --role admin --all-accounts', '--all-accounts needs --role emitter'],
  ['keys create --role operator --account acme', 'is for all accounts: leave out --account'],
  ['keys create --role emitter --all-accounts --name ACME', 'is for all accounts: leave out --account'],
  [
    'keys create --role operator --profile prov',
    'created in Redis, not through the API: replace --profile with --redis-url',
  ],
  [
    'keys create --role emitter --all-accounts --api-url http://x',
    'not through the API: replace --api-url with --redis-url',
  ],
  [
    'keys create --role emitter',
    'choose the account of the key with --account, or for an emitter of all accounts, --all-accounts',
  ],
  ['keys create --account acme', "required option '--role <role>' not specified"],
  ['keys create --account acme --role owner', 'Allowed choices are admin, member, emitter, operator, provisioner'],
  ['keys create --account a --account b --role member', "'--account <account>' takes one value; use it once"],
  ['metrics --month 2026-10 --resource-type agent --month=2026-11', "'--month <month>' takes one value; use it once"],
  ...['metrics', 'emit --check x.jsonl', 'erase', 'audit', 'rejected list', 'keys list', 'dimensions'].flatMap(
    (command): [string, string][] => [
      [`${command} --account package.json`, 'It looks like a file. Give one name.'],
      [`${command} --account @names`, 'It looks like a file. Give one name.'],
      [`${command} --account a --account b`, "'--account <account>' takes one value; use it once"],
    ],
  ),
  ['metrics --watch --watch 5', "'--watch [seconds]' takes one value; use it once"],
  ['accounts acme', "too many arguments for 'accounts'"],
  ['keys list acme', "too many arguments for 'list'"],
  ['keys list --redis-url http://127.0.0.1', 'must be a URL such as redis://'],
  ['emit x.jsonl --batch 5001', 'must be a whole number from 1 to 5000'],
  ['export focus --month 2100-12', '2100-12 has not started yet'],
  ['top --since 32d', '--since must be at most 31d'],
  ['top --by cost', 'Allowed choices are revisions, rejected, lag.'],
  ['retention close', 'use either --before or --months'],
  ['retention close --before 2026-13', 'must be a month from 1970-01'],
  ['retention close --before 2100-12', 'the current and the previous month stay open'],
  [`retention close --before ${new Date().toISOString().slice(0, 7)}`, 'the current and the previous month stay open'],
  ['audit --from 2026-01-02 --to 2026-01-01', '--to must be after --from'],
  ['erase --account a --confirm b', '--confirm must be the same account as --account'],
  ['reprice --account a --from 2026-02-30 --to 2026-03-01', 'must be a UTC day or time'],
  ['reprice --account a --from 2026-01-02 --to 2026-01-01', '--to must be after --from'],
  ['reprice --account a --from 2026-01-01 --to 2026-01-02 --step 0', 'must be a whole number from 1'],
  ['rejected show 42', '42 is not a rejection ID'],
  ['rejected replay', 'specify either rejection IDs, or --all'],
  ['rejected replay --all', 'or --all with at least one filter'],
  ['rejected replay a-1 --all --account a', 'specify either rejection IDs'],
  ['rejected replay a-1 --edit usage', 'must have the form field=value'],
  ['rejected replay a-1 a-2 --edit eventId=x', '--edit eventId needs a single rejection ID'],
  ['rejected replay --all --account a --edit eventId=x', 'events with the same ID count as one'],
  ['rejected discard --account a', 'specify either rejection IDs'],
  ['rejected list --reason bogus', 'Allowed choices are'],
  ['rejected list --since 5', 'hours, days or weeks: 90m, 24h, 30d, 12w'],
  ['rejected list --since 5m --from 2026-01-01', "cannot be used with option '--from"],
])('"%s" is wrong usage: exit code 2, nothing on stdout, and the reason', async (line, reason) => {
  const { code, stdout, stderr } = await runCommand(line.split(' ').filter((word) => word !== ''));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(reason);
});

const folder = testFolder();

it('an account may have the name of a file that exists', async () => {
  await writeFile(folder('acme.com'), '');
  expect(nameOf(folder('acme.com'))).toBe(folder('acme.com'));
});

let book: string;
beforeAll(async () => {
  book = await writePriceBook(folder('book.json'), 5, '3.50', '2026-03-01T00:00:00Z');
});

it('dimensions lists the prices of a book at a time', async () => {
  const { code, stdout, stderr } = await runCommand(['dimensions', '--book', book, '--at', '2026-02-28']);
  expect({ code, lines: stdout.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 13 });
  expect(stdout).toMatch(/^volume_storage_gbs +volume +GB-s +\$0\.12 per GB-month +1970-01-01T00:00:00Z$/m);
  expect(stdout).toMatch(/^sandbox_compute_runtime_gbs +sandbox +GB-s +none yet$/m);
  expect(stderr).toBe(`Prices in force at 2026-02-28T00:00:00Z: ${book}, version 5.\n`);
});

it('dimensions prints the example book as a file that can be used', async () => {
  const example = await runCommand(['dimensions', '--example-book']);
  expect(new PriceBook(JSON.parse(example.stdout)).canonicalText).toBe(DEFAULT_PRICE_BOOK.canonicalText);
});

it('a result is a table, JSON or CSV, by --output or its short forms', async () => {
  const usage = ['agent_compute_runtime_gbs=86400', 'agent_async_requests_count=1000000'];
  const print = async (...flags: readonly string[]) =>
    (await runCommand(['estimate', ...usage, '--book', book, ...flags])).stdout;
  expect(await print('--output', 'table')).toBe(await print());
  expect(await print('--output', 'json')).toBe(await print('--json'));
  const csv = [
    'billingDimension,usage,cost',
    'agent_compute_runtime_gbs,86400,0.9936',
    'agent_async_requests_count,1000000,0.2',
  ];
  expect((await print('--output', 'csv')).split('\r\n')).toEqual([...csv, '']);
  expect(await print('--csv')).toBe(await print('--output', 'csv'));
  expect(await print('--csv=excel')).toBe(`\uFEFF${await print('--csv')}`);
});

it('CSV has a column for each field of an object inside, also if all are null or there is no row, and a text that begins a formula as text for a spreadsheet', () => {
  const stdout = new PassThrough();
  const items = [
    { name: '=1', price: { amount: '0.10', per: 2 }, roles: ['a', 'b'], end: null },
    { name: 'x', price: null, end: null },
  ];
  printResult({ stdout }, { csv: 'excel' }, items, '');
  printResult({ stdout }, { output: 'csv' }, { total: '1' }, '', []);
  printResult({ stdout }, { output: 'csv' }, ['agent'], '');
  printResult({ stdout }, { output: 'csv' }, [], '', [], ['id', 'name']);
  const lines = [
    '\uFEFFname,price.amount,price.per,roles,end',
    `"'=1",0.10,2,"[""a"",""b""]",`,
    'x,,,,',
    'value',
    'agent',
    'id,name',
    '',
  ];
  expect(String(stdout.read()).split('\r\n')).toEqual(lines);
});

it.each(['dimensions', 'estimate agent_async_requests_count=1'])(
  '%s without a login prints no prices, neither those of PRICE_BOOK nor the built-in ones',
  async (line) => {
    const run = await runCommand(line.split(' '), { env: { PRICE_BOOK: book } });
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('or use --book <file>') });
  },
);

it('estimate prices a list, and a file of events, as the service would', async () => {
  const usage = ['agent_compute_runtime_gbs=86400', 'agent_async_requests_count=1000000'];
  expect(JSON.parse((await runCommand(['estimate', ...usage, '--book', book, '--json'])).stdout)).toEqual({
    currency: 'USD',
    lines: [
      { billingDimension: 'agent_compute_runtime_gbs', usage: '86400', cost: '0.9936' },
      { billingDimension: 'agent_async_requests_count', usage: '1000000', cost: '0.2' },
    ],
    totalCost: '1.1936',
  });
  const file = [
    '{"billingDimension":"volume_storage_gbs","usage":"1","eventId":"x"}',
    '',
    '{"billingDimension":"volume_storage_gbs","usage":2,"void":true}',
  ];
  // 0.12 / 2,628,000, rounded half-even once to 12 decimals.
  const { stdout } = await runCommand(['estimate', '--file', '-', '--book', book, '--json'], {
    stdin: file.join('\n'),
  });
  expect(stdout).toContain('"totalCost":"0.000000045662"');
});

it.each([
  ['{"billingDimension":"volume_storage_gbs"}', 'usage must be a number or a decimal string'],
  ['{"billingDimension":"oven","usage":1}', 'billingDimension must be a dimension from "meterline dimensions"'],
  [
    '{"billingDimension":"volume_storage_gb","usage":1}',
    'billingDimension must be a dimension from "meterline dimensions"; did you mean volume_storage_gbs?',
  ],
  ['{"billingDimension":"volume_storage_gbs","usage":1,"timestamp":"now"}', 'timestamp must be RFC 3339 in UTC'],
  ['{"billingDimension":"agent_async_requests_count","usage":1.5}', 'usage must be a whole number'],
  ['{"billingDimension":"\\u001b[31m_count","usage":1.5}', 'billingDimension must be a dimension from'],
  ['[1]', 'not a JSON object'],
])('estimate names the line %s, which it cannot price', async (line, reason) => {
  const run = await runCommand(['estimate', '--file', '-', '--book', book], { stdin: line });
  expect(run).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`standard input:1: ${reason}`) });
});

it.each([
  ['agent_compute_runtime', '; did you mean agent_compute_runtime_gbs?'],
  ['agent_async_request_count', '; did you mean agent_async_requests_count?'],
  ['volume_storage_gsb', '; did you mean volume_storage_gbs?'],
  ['oven_heat_hours', ''],
  ['oven', ''],
])('estimate of the unknown dimension %s is wrong usage', async (dimension, hint) => {
  const { code, stdout, stderr } = await runCommand(['estimate', `${dimension}=1.5`, '--book', book]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  const rule = 'billingDimension must be a dimension from "meterline dimensions"';
  expect(stderr).toBe(`meterline: ${dimension}=1.5: ${rule}${hint}\n`);
});

it('estimate of a part of a request is wrong usage', async () => {
  const { code, stderr } = await runCommand(['estimate', 'agent_async_requests_count=1.5', '--book', book]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('=1.5: usage must be a whole number')]);
});

const REPRICE = 'reprice --account a --from 2026-01-01 --to 2026-01-02';

it.each([
  ['dimensions --book none.json', {}, 'cannot read none.json: no such file or directory'],
  ['estimate job_compute_runtime_gbs=1 --book package.json', {}, 'package.json (from --book) cannot be used: '],
  [REPRICE, { PRICE_BOOK: 'package.json' }, 'package.json (from PRICE_BOOK) cannot be used: '],
])('a price book of "%s" with %j, which cannot be used, is named', async (line, env, reason) => {
  const run = await runCommand(line.split(' '), { env });
  expect(run).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(reason) });
});

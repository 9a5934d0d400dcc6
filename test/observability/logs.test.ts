/** docs/logs.md lists what the services log: every event, its level and its fields, and nothing else. */
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from '@jest/globals';
import { parse } from '@swc/core';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = {
  ingest: 'services/ingest/src',
  query: 'services/query/src',
  collector: 'services/collector/src',
  alerts: 'services/alerts/src',
  http: 'packages/api/src',
  all: 'packages/service/src',
} as const;
const LEVELS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);

interface LoggedEvent {
  readonly event: string;
  readonly of: string;
  /** Undefined where another library decides: the request log. */
  readonly level: string | undefined;
  readonly fields: readonly string[];
  /** Whether fields come from elsewhere as well. */
  readonly isOpen: boolean;
}

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);
const nodesIn = (value: unknown): Node[] => (Array.isArray(value) ? value.filter(isNode) : []);

/** Every node of a syntax tree. */
function* walk(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* walk(item);
  if (!isNode(value)) return;
  yield value;
  for (const child of Object.values(value)) yield* walk(child);
}

/** The name of `log`, `this.#log` or `options.log`. */
function lastName(node: unknown): string {
  if (!isNode(node)) return '';
  if (node['type'] === 'MemberExpression') return lastName(node['property']);
  return typeof node['value'] === 'string' ? node['value'] : lastName(node['id']);
}

/** The first argument of each call such as `log.info(…)`, by level. */
function logCalls(tree: Node): { level: string; argument: Node | undefined }[] {
  return [...walk(tree)].flatMap((node) => {
    const callee = node['callee'];
    if (node['type'] !== 'CallExpression' || !isNode(callee) || callee['type'] !== 'MemberExpression') return [];
    const level = lastName(callee['property']);
    if (!LEVELS.has(level) || !/^log(ger)?$/.test(lastName(callee['object']))) return [];
    const argument = nodesIn(node['arguments'])[0]?.['expression'];
    return [{ level, argument: isNode(argument) ? argument : undefined }];
  });
}

const keyOf = (property: Node) => lastName(property['key'] ?? property);

/** An object literal with the field `event`, or undefined. */
function eventOf(object: Node): { event: string; fields: string[]; isOpen: boolean } | undefined {
  if (object['type'] !== 'ObjectExpression') return undefined;
  const properties = nodesIn(object['properties']);
  const own = properties.filter(({ type }) => type === 'KeyValueProperty' || type === 'Identifier');
  const event = own.find((property) => keyOf(property) === 'event')?.['value'];
  if (!isNode(event) || typeof event['value'] !== 'string') return undefined;
  const fields = own.map(keyOf).filter((name) => name !== 'event');
  return { event: event['value'], fields, isOpen: own.length < properties.length };
}

let trees: { of: string; file: string; tree: Node }[];
let listed: { event: string; level: string; of: string; fields: string[] }[];
beforeAll(async () => {
  const files = await Promise.all(
    Object.entries(SOURCES).map(async ([of, folder]) => {
      const names = await readdir(`${ROOT}${folder}`, { recursive: true });
      return names.filter((name) => /(?<!\.test)\.ts$/.test(name)).map((name) => ({ of, file: `${folder}/${name}` }));
    }),
  );
  trees = await Promise.all(
    files.flat().map(async ({ of, file }) => {
      const tree: unknown = await parse(await readFile(`${ROOT}${file}`, 'utf8'), { syntax: 'typescript' });
      if (!isNode(tree)) throw new Error(`${file} has no syntax tree`);
      return { of, file, tree };
    }),
  );
  const rows = (await readFile(`${ROOT}docs/logs.md`, 'utf8')).matchAll(/^\| `(\w+)` \| (\w+) \| (\w+) \| (.*?) \|/gm);
  listed = [...rows].map(([, event = '', level = '', of = '', fields = '']) => {
    return { event, level, of, fields: [...fields.matchAll(/`(\w+)`/g)].map(([, name = '']) => name) };
  });
});

function loggedEvents(): LoggedEvent[] {
  return trees.flatMap(({ of, tree }) => {
    const levels = new Map(logCalls(tree).map(({ level, argument }) => [argument, level]));
    return [...walk(tree)].flatMap((node) => {
      const found = eventOf(node);
      return found ? [{ ...found, of, level: levels.get(node) }] : [];
    });
  });
}

it('every log call has an event', () => {
  const calls = trees.flatMap(({ file, tree }) => logCalls(tree).map((call) => ({ file, ...call })));
  expect(calls.length).toBeGreaterThan(12);
  const without = calls.filter(({ argument }) => !argument || !eventOf(argument));
  expect(without.map(({ file, level }) => `${file}: ${level}`)).toEqual([]);
});

it('the page of log events lists every event in the sources, and no others', () => {
  const name = ({ event, of }: { event: string; of: string }) => `${event} of ${of}`;
  expect([...new Set(loggedEvents().map(name))].sort()).toEqual(listed.map(name).sort());
});

it('the page of log events has the level and the fields of each', () => {
  const differences = loggedEvents().filter(({ event, of, level, fields, isOpen }) => {
    const row = listed.find((candidate) => candidate.event === event && candidate.of === of);
    if (!row || (level !== undefined && row.level !== level)) return true;
    const missing = fields.filter((field) => !row.fields.includes(field));
    return missing.length > 0 || (!isOpen && row.fields.length !== fields.length);
  });
  expect(differences).toEqual([]);
});

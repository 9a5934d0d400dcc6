/** What a connection to ClickHouse offers, and what a statement is. Implemented in connection.ts. */
import type { ClickHouseSettings } from '@clickhouse/client';
import type { z } from 'zod';
import type { Cluster } from '../cluster/cluster.js';

export interface WarehouseOptions {
  /** One address, or several that are separated by commas; see {@link clickHouseUrlFault}. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Undefined: one server. */
  readonly cluster?: Cluster | undefined;
  /** How long the server may be silent before a statement counts as failed. */
  readonly requestTimeoutMs?: number;
  /** Statements beyond so many at once wait for one of these connections. */
  readonly maxConnections?: number;
  /** How long the server may work on a statement. Default: a little longer than its caller waits. */
  readonly maxExecutionMs?: number;
  /** The most memory that the server may use for a statement; what can be sorted or grouped on disk is, from half of it. */
  readonly maxMemoryBytes?: number;
  /** Shown in ClickHouse's logs and in system.query_log. */
  readonly application: string;
  /** Called for every statement. */
  readonly observe?: StatementObserver;
}

/** Called when a statement begins, with a name that never changes. Must not throw. */
export type StatementObserver = (name: string) => StatementEnd;
/**
 * `refused`: the server answered with an error. `unanswered`: no answer came, or not in time, or not to its end.
 * `cancelled`: nobody waited for the answer any more.
 */
export type StatementOutcome = 'ok' | 'refused' | 'unanswered' | 'cancelled';
/** Called once, when the statement has ended. */
export type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

/** The value of a parameter of a statement. */
export type Parameter = string | number | bigint | Tuple | readonly Parameter[];

/** Members may be of different types, those of an array may not. */
export class Tuple {
  constructor(readonly members: readonly Parameter[]) {}
}

/** Part of a statement, with its parameters; only identifiers of the catalog are ever part of the text. */
export interface Relation {
  readonly query: string;
  /** Values of `{name: Type}` in the text. */
  readonly query_params: Readonly<Record<string, Parameter>>;
}

export interface Statement extends Relation {
  /** Stable: metrics, dashboards and traces name the statement by it. */
  readonly name: string;
  /** For this statement alone. */
  readonly settings?: ClickHouseSettings;
  /** Short and needed by everyone: it has connections of its own, so that it never waits for a long one. */
  readonly isShort?: boolean;
}

/** What statements that belong together have in common. */
export interface Scope {
  /** Aborted: their answers are not wanted any more, and the server stops working on them. */
  readonly signal?: AbortSignal;
  /** For each of them, unless it has its own. */
  readonly settings?: ClickHouseSettings;
}

/** A connection to Meterline's database; every function of this package takes one as its first argument. */
export interface Warehouse {
  /**
   * Runs a SELECT and checks every row against its schema. A connection that is lost before the answer is complete gets
   * the statement sent once more: most often the server closed it, idle, just as the statement left.
   * @throws ClickHouseError when the server refuses, also after it has begun to answer; an error with a `code` when no
   * complete answer comes; a SyntaxError when what answers is not ClickHouse; a ZodError when a row is not as it should be
   */
  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]>;
  /**
   * Runs a statement that answers with nothing. What it has written is durable when the promise resolves. When it rejects
   * with anything but a ClickHouseError, the statement may or may not have run, or may still be running.
   * @param body the rows of an insert, in the format that the statement names. Such a statement is sent once more when the
   * connection is lost: inserting the same rows twice changes nothing. Any other is sent only once, because a migration
   * or a mutation that may be running must not be started a second time without its caller's knowledge.
   * @throws as {@link read}
   */
  run(statement: Statement, body?: string | Buffer): Promise<void>;
  /**
   * The same connection for statements of one scope. When its signal is aborted they fail with the signal's reason, but not
   * before the server has ended them: until then they are under way.
   */
  within(scope: Scope): Warehouse;
  /** Whether a server answers at all. It runs no statement, and never waits for one: it has a connection of its own. */
  ping(): Promise<boolean>;
  /** Closes at once: statements under way fail. A stop must not wait for a server that hangs. */
  close(): Promise<void>;
}

/**
 * The value as text of the TabSeparated format. The official client has such a function too but
 * does not export it. Source: ClickHouse documentation, "HTTP interface", "Queries with parameters".
 */
export function formatParameter(value: Parameter): string {
  return typeof value === 'string' ? escaped(value) : formatMember(value);
}

/** As a member of an array or a tuple: there, texts have quotes. */
function formatMember(value: Parameter): string {
  if (typeof value === 'string') return `'${escaped(value)}'`;
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value instanceof Tuple) return `(${value.members.map(formatMember).join(',')})`;
  return `[${value.map(formatMember).join(',')}]`;
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', "'": "\\'", '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function escaped(value: string): string {
  return value.replace(/[\\'\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

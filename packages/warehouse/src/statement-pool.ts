/**
 * Statements that somebody waits for, sent at once. The client of ClickHouse lets a timer pass before each of its requests
 * and pipes the statement behind the headers, which is a fifth of the time of a summary: docs/decisions/0010.
 */
import { parseError } from '@clickhouse/client';
import { errors, Pool } from 'undici';

/** Values of a statement's parameters that can be sent as they are. */
export type ScalarParameters = Readonly<Record<string, string | number>>;

export interface StatementPoolOptions {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly application: string;
  /** How long the server may be silent before a statement counts as failed. */
  readonly requestTimeoutMs: number;
  readonly maxConnections: number;
  readonly settings: Readonly<Record<string, string | number>>;
}

const OK = 200;
const ROWS_AS_JSON = { default_format: 'JSONEachRow', output_format_json_array_of_rows: '1' };

export class StatementPool {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #settings: URLSearchParams;

  constructor(options: StatementPoolOptions) {
    const { url, user, password, database, application, requestTimeoutMs, maxConnections, settings } = options;
    this.#pool = new Pool(url, {
      connections: maxConnections,
      connect: { timeout: requestTimeoutMs },
      headersTimeout: requestTimeoutMs,
      bodyTimeout: requestTimeoutMs,
    });
    this.#headers = {
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      'user-agent': application,
      'content-type': 'text/plain; charset=utf-8',
    };
    this.#settings = new URLSearchParams({ ...texts(settings), ...ROWS_AS_JSON, database });
  }

  /**
   * @returns the rows of a SELECT, an array of objects
   * @throws as {@link run}
   */
  async read(query: string, parameters: ScalarParameters): Promise<unknown> {
    const answer = await this.run(query, parameters).catch((error: unknown) => {
      if (!isLostConnection(error)) throw error;
      // Most often the server has closed a connection that idled, just as the statement was sent.
      return this.run(query, parameters);
    });
    return JSON.parse(answer);
  }

  /**
   * @returns what the server answers
   * @throws ClickHouseError when it refuses; an error with a code, of the system or of undici, when there is no answer, or
   * none to its end: what fails after the first rows ends the connection
   */
  async run(query: string, parameters: ScalarParameters): Promise<string> {
    const search = new URLSearchParams(this.#settings);
    for (const [name, value] of Object.entries(parameters)) search.set(`param_${name}`, escaped(String(value)));
    const { statusCode, headers, body } = await this.#pool.request({
      method: 'POST',
      path: `/?${search}`,
      headers: this.#headers,
      body: query,
    });
    const answer = await body.text();
    if (statusCode !== OK || headers['x-clickhouse-exception-code'] !== undefined) throw parseError(answer);
    return answer;
  }

  /** At once: what is under way fails. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function isLostConnection(error: unknown): boolean {
  return (
    error instanceof errors.SocketError || (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
  );
}

function texts(values: ScalarParameters): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Parameters are read as values of the TabSeparated format. Source: ClickHouse documentation, "HTTP interface". */
function escaped(value: string): string {
  return value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

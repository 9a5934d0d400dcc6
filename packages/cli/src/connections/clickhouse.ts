import { OperationError } from '@meterline/operations/operation-error';
import {
  ClusterError,
  checkConnection,
  clickHouseFailureKind,
  createWarehouse,
  openShards,
  type Shards,
  type WarehouseOptions,
} from '@meterline/warehouse';
import { CommandError, systemErrorCode } from '../command.js';
import { type ClickHouseSettings, displayUrl } from '../settings/settings.js';

const CONNECT_TIMEOUT_MS = 5_000;
/** A migration may rewrite data. */
const STATEMENT_TIMEOUT_MS = 600_000;

/**
 * What a warehouse needs to know, after a check that ClickHouse answers and lets us in.
 * @throws CommandError when it does not
 */
export async function reachClickHouse({
  url,
  user,
  password,
  database,
  cluster,
}: ClickHouseSettings): Promise<WarehouseOptions> {
  const options = { url: url.value, user, password, database, cluster, application: 'meterline-cli' };
  // The database may not be there yet, so the check is made in the one that always is.
  const server = createWarehouse({ ...options, database: 'default', requestTimeoutMs: CONNECT_TIMEOUT_MS });
  try {
    await checkConnection(server);
  } catch (error) {
    throw clickHouseFailure({ url, user, password, database, cluster }, error);
  } finally {
    await server.close();
  }
  return { ...options, requestTimeoutMs: STATEMENT_TIMEOUT_MS };
}

/**
 * Runs `work` with connections to the shards of Meterline's database, one if it is on one server, and closes them.
 * @throws CommandError when ClickHouse cannot be reached, goes away or refuses a statement, or an operation fails
 */
export async function withShards<T>(settings: ClickHouseSettings, work: (shards: Shards) => Promise<T>): Promise<T> {
  let shards: Shards | undefined;
  try {
    shards = await openShards(await reachClickHouse(settings));
    return await work(shards);
  } catch (error) {
    if (error instanceof ClusterError) throw new CommandError(error.message, undefined, { cause: error });
    if (error instanceof OperationError) throw new CommandError(error.message, undefined, { cause: error });
    throw isServerFailure(error) ? clickHouseFailure(settings, error) : error;
  } finally {
    await shards?.close();
  }
}

/** Errors of ClickHouse and of the system have a code. What is not ClickHouse answers with a plain Error. */
function isServerFailure(error: unknown): boolean {
  const isPlain = error instanceof Error && Object.getPrototypeOf(error) === Error.prototype;
  return isPlain || (!(error instanceof CommandError) && systemErrorCode(error) !== undefined);
}

/** The failure of a statement or a connection, as one line that names the server. */
export function clickHouseFailure({ url, user }: ClickHouseSettings, cause: unknown): CommandError {
  const place = `ClickHouse at ${displayUrl(url.value)} (from ${url.source})`;
  const code = systemErrorCode(cause);
  const message = cause instanceof Error ? cause.message.split('\n', 1)[0] : String(cause);
  const text = {
    refused: `${place} refuses (as user ${user}): ${message}`,
    foreign: `${place} does not answer as ClickHouse does${message && `: ${message}`}`,
    away: `cannot reach ${place}: ${code}; is it running?`,
  }[clickHouseFailureKind(cause)];
  return new CommandError(text, undefined, { cause });
}

/** Parses ClickHouse addresses. Separate from the connection, so that callers need not load the ClickHouse client. */
const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

export function hostsOf(urls: string): string[] {
  return urls.split(',').map((url) => url.trim());
}

/**
 * Validates a comma-separated list of addresses. Returns an error message that follows the setting's name, or undefined if all are valid.
 * Rejects paths, credentials and parameters, which the client would ignore. Never repeats the address, because it may hold a password.
 */
export function clickHouseUrlProblem(text: string): string | undefined {
  return hostsOf(text)
    .map(urlProblem)
    .find((problem) => problem !== undefined);
}

function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol)) return `must be a URL such as ${EXAMPLE}`;
  const more = [username, password, pathname === '/' ? '' : pathname, search, hash].some((part) => part !== '');
  if (!more) return undefined;
  return (
    `must be a URL such as ${EXAMPLE} and nothing more: set user, password and database with ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}

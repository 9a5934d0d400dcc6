/**
 * One ClickHouse and one Redis for the whole run. Their URLs reach the test workers through the environment:
 * METERLINE_TEST_CLICKHOUSE_URL and METERLINE_TEST_REDIS_URL.
 */
import { startLocalStack } from '@meterline/local-stack';

export default async function globalSetup() {
  const stack = await startLocalStack({ say: console.log });
  process.env.METERLINE_TEST_CLICKHOUSE_URL = stack.clickhouse.url;
  process.env.METERLINE_TEST_REDIS_URL = stack.redis.url;
  globalThis.meterlineTestStack = stack;

  // Jest runs no teardown when it is interrupted. The servers would end by themselves; their files would stay.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => stack.stop().finally(() => process.exit(130)));
  }
}

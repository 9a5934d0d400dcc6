/**
 * Defines the settings that Meterline sends with every statement. They override the user's settings profile on the server, which may make a
 * statement slow or fail, but must never change its result. Source: all settings in ClickHouse 26.7's system.settings.
 */
import { type ClickHouseSettings, SettingsMap } from '@clickhouse/client';

/** The oldest tested version. Some older versions lack a setting or a table feature that Meterline uses. */
export const OLDEST_CLICKHOUSE = '26.7';

/** These settings make a statement fail at a limit. With `break` or `any`, it would return or store a partial result. */
const WHOLE_RESULTS = {
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  group_by_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  result_overflow_mode: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  set_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  distinct_overflow_mode: 'throw',
  transfer_overflow_mode: 'throw',
  partial_result_on_first_cancel: 0,
  // Start the response only after the statement has ended. So the status is final, and an error never cuts the response short.
  wait_end_of_query: 1,
  // The value 1 would omit the rows of an unavailable shard.
  skip_unavailable_shards: 0,
  enable_parallel_replicas: '0',
  // The value 1 would return separate groups from each shard.
  distributed_group_by_no_merge: '0',
  // Other values of the settings below would omit or hide rows.
  limit: '0',
  offset: '0',
  additional_result_filter: '',
  additional_table_filters: SettingsMap.from({}),
  ignore_cold_parts_seconds: '0',
  prefer_warmed_unmerged_parts_seconds: '0',
  // The value 1 could return an outdated result.
  use_query_cache: 0,
} as const satisfies ClickHouseSettings;

const DURABILITY = {
  // Return only after the rows are stored. Rows in the server's buffer would be lost in a crash after they were acknowledged.
  async_insert: 0,
  // Turn off ClickHouse's own deduplication of inserts. Meterline inserts the same rows again on purpose, in a retry or in a replay after
  // an erasure. Only the keys of rows decide what is a duplicate.
  insert_deduplicate: 0,
  deduplicate_insert: 'disable',
  deduplicate_insert_select: 'disable',
  insert_deduplication_token: '',
  // Deletes and ALTERs return only after every replica has applied them.
  mutations_sync: '2',
  lightweight_deletes_sync: '2',
  lightweight_delete_mode: 'alter_update',
  alter_sync: '1',
  // Send each row to the shard of its account.
  insert_shard_id: '0',
  insert_distributed_one_random_shard: 0,
  // One insert may contain a backfill of any number of months, each of which is a partition.
  max_partitions_per_insert_block: '0',
  input_format_allow_errors_num: '0',
  input_format_allow_errors_ratio: 0,
  input_format_skip_unknown_fields: 0,
  input_format_defaults_for_omitted_fields: 1,
} as const satisfies ClickHouseSettings;

/** SQL semantics that Meterline's statements rely on. */
const LANGUAGE = {
  // This setting must come first, because it changes the defaults of other settings.
  compatibility: '',
  dialect: 'clickhouse',
  enable_analyzer: 1,
  prefer_column_name_to_alias: 0,
  enable_positional_arguments: 1,
  implicit_table_at_top_level: '',
  union_default_mode: '',
  final: 0,
  inject_random_order_for_select_without_order_by: 0,
  rewrite_in_to_join: 0,
  apply_deleted_mask: 1,
  // Deduplicate only within each partition, which is faster. This is correct, because all rows of an event have the same hour in their key,
  // and a partition is a month.
  do_not_merge_across_partitions_select_final: 1,
  aggregate_functions_null_for_empty: 0,
  empty_result_for_aggregation_by_empty_set: 0,
  group_by_use_nulls: 0,
  join_use_nulls: 0,
  transform_null_in: 0,
  cast_keep_nullable: 0,
  data_type_default_nullable: 0,
  decimal_check_overflow: 1,
  enable_extended_results_for_datetime_functions: 0,
  enable_named_columns_in_function_tuple: 0,
  session_timezone: '',
} as const satisfies ClickHouseSettings;

const FORMATS = {
  date_time_input_format: 'best_effort',
  date_time_output_format: 'simple',
  // JSON keeps exact decimals and 64-bit integers only as strings.
  output_format_json_quote_decimals: 1,
  output_format_json_quote_64bit_integers: 1,
  output_format_decimal_trailing_zeros: 0,
  output_format_always_write_decimal_point_in_float_and_decimal: 0,
  // Parsing one array takes half the time of parsing one line per row.
  output_format_json_array_of_rows: 1,
  cancel_http_readonly_queries_on_client_close: 1,
} as const satisfies ClickHouseSettings;

export const SETTINGS = { ...WHOLE_RESULTS, ...DURABILITY, ...LANGUAGE, ...FORMATS } as const;

export function isOlderThan(version: string, oldest: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

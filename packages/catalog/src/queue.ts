/** The queue between runtimes and the ingest worker, and how large a job on it may be. Source: DESIGN section 3. */
export const QUEUE_NAME = 'usage-events';
/** BullMQ's own default. */
export const QUEUE_PREFIX = 'bull';
export const MAX_EVENTS_PER_JOB = 5_000;

/**
 * The most bytes of a job's data in UTF-8, checked before it is parsed: 60 MB of `{},` would fill gigabytes of memory. There is
 * room for 5,000 events whose four names have 256 characters of four bytes each, the longest that there are.
 */
export const MAX_JOB_BYTES = 24 * 1024 * 1024;
/** Fields, elements, objects and arrays. An event has at most 11 fields, so a job of 5,000 has 65,000 of these. */
export const MAX_JOB_VALUES = 250_000;

/** Defines the queue between producers and the ingest worker, and the limits of a job. Source: DESIGN section 3. */
export const QUEUE_NAME = 'usage-events';
/** BullMQ's default. */
export const QUEUE_PREFIX = 'bull';
export const MAX_EVENTS_PER_JOB = 5_000;

/**
 * Maximum size of a job's data in UTF-8 bytes, checked before parsing: 60 MB of `{},` would take gigabytes of memory. It fits 5,000 events
 * whose four names have the maximum of 256 characters of four bytes each.
 */
export const MAX_JOB_BYTES = 24 * 1024 * 1024;
/**
 * Maximum number of fields, elements, objects and arrays in a job. An event has at most 11 fields, so a job of 5,000 events has 65,000 of
 * them.
 */
export const MAX_JOB_VALUES = 250_000;

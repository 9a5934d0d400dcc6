/** Defines the queue from producers to the ingest worker, and the limits of a job, which holds one or more events. Source: docs/decisions/0017. */
export const QUEUE_NAME = 'usage-events';
/** The default prefix of BullMQ. */
export const QUEUE_PREFIX = 'bull';
export const MAX_EVENTS_PER_JOB = 5_000;

/**
 * The maximum size of a job's data in UTF-8 bytes. It is checked before parsing, because parsing 60 MB of `{},` would take gigabytes of
 * memory. A job of 5,000 events fits even if all four names of each event have the maximum of 256 characters of four bytes each.
 */
export const MAX_JOB_BYTES = 24 * 1024 * 1024;
/** The maximum number of fields, elements, objects and arrays. An event has at most 11 fields, so a job of 5,000 events has about 65,000. */
export const MAX_JOB_VALUES = 250_000;

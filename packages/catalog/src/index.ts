export * from './amount-format.js';
export * from './calendar.js';
export * from './caller.js';
export * from './events.js';
export * from './group-by.js';
export * from './metrics-csv.js';
export * from './period.js';
export * from './price-book.js';

/** Events in the bytes of JSON, for services that read many of them. */
export { EventScanner, FIELD, isNoText } from './event-scanner.js';
export { MOST_USAGE_CHARACTERS, usualUsage } from './usual-usage.js';

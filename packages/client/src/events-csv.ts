/** Formats events as CSV, in the same way for the command line and the web page. */
import { type EventResponse, eventSchema } from '@meterline/catalog';
import { type CsvForm, csvText } from '@meterline/catalog/plain';

const FIELDS = Object.keys(eventSchema.shape).flatMap((name) =>
  name === 'price' ? ['amount', 'per', 'effectiveFrom'].map((member) => `price.${member}`) : name,
);

/** @param isContinued leaves out the heading, for further pages of the same list */
export function eventsCsv(events: readonly EventResponse[], form: CsvForm, isContinued: boolean): string {
  return csvText(events, FIELDS, form, isContinued);
}

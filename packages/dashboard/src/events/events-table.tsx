import { DIMENSIONS, formatUsage, formatUsdExact, priceText, replacedText } from '@meterline/catalog';
import type { EventAnswer, EventRevision } from '@meterline/client';
import { BILLING_DIMENSION_LABEL, valueLabel } from '../breakdown/texts.js';

/** A row for each event, and below it one for each payload that it replaced. */
export function EventsTable({ events }: { readonly events: readonly EventAnswer[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Event, time (UTC)</th>
          <th scope="col">Resource</th>
          <th scope="col" className="number">
            Usage
          </th>
          <th scope="col" className="number">
            Price
          </th>
          <th scope="col" className="number">
            Cost (USD)
          </th>
        </tr>
      </thead>
      {events.map(({ eventId, history, ...newest }) => (
        <tbody key={`${newest.timestamp} ${eventId}`}>
          <tr>
            <th scope="row">
              {newest.timestamp.replace('T', ' ').replace('Z', '')}
              <code>{eventId}</code>
            </th>
            <PayloadCells payload={newest} />
          </tr>
          {history.map((replaced) => (
            <tr key={`${replaced.revision} ${replaced.priceRevision} ${replaced.priceBook}`} className="replaced">
              <th scope="row">{replacedText(replaced)}</th>
              <PayloadCells payload={replaced} />
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function PayloadCells({ payload }: { readonly payload: EventRevision }) {
  const { workspace, resourceName, resourceUuid, billingDimension, usage, cost, voided, price, priceBook } = payload;
  const beside = [workspace, BILLING_DIMENSION_LABEL[billingDimension], valueLabel('resourceUuid', resourceUuid)];
  return (
    <>
      <td>
        <span className="event-resource">{resourceName}</span>
        <span className="beside">{beside.join(' · ')}</span>
      </td>
      <td className="number">{formatUsage(usage, DIMENSIONS[billingDimension].unit)}</td>
      <td className="number">
        {price ? priceText(price) : 'not on record'}
        <span className="beside">
          book {priceBook}
          {price && `, since ${price.effectiveFrom.slice(0, 10)}`}
        </span>
      </td>
      <td className="number">{voided ? 'void' : formatUsdExact(cost)}</td>
    </>
  );
}

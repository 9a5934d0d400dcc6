/** An amount to the last digit, its point above the point of the amount below. */
import { type DecimalText, grouped } from '@meterline/catalog';

interface ExactAmountProps {
  readonly amount: DecimalText;
  /** Digits after the point that are always written: 2 for money. */
  readonly least: number;
  /** Digits of the longest amount in the column: the room that this one takes. */
  readonly room: number;
  readonly symbol?: string;
}

/** The digits past the usual ones are quieter; the room of those that are missing is kept by a pseudo-element. */
export function ExactAmount({ amount, least, room, symbol = '' }: ExactAmountProps) {
  const [integer = '', fraction = ''] = grouped(amount).split('.');
  const sign = integer.startsWith('-') ? '−' : '';
  const usual = fraction.slice(0, least).padEnd(least, '0');
  const rest = fraction.slice(least);
  const missing = room - usual.length - rest.length + (usual.length + rest.length === 0 && room > 0 ? 1 : 0);
  return (
    <span className="exact">
      {sign}
      {symbol}
      {integer.replace('-', '')}
      {(usual || rest) && '.'}
      {usual}
      <span className="exact-rest" data-missing={missing > 0 ? '0'.repeat(missing) : undefined}>
        {rest}
      </span>
    </span>
  );
}

import type { View } from '../view/view.js';

export const PAGE_ROWS = 25;

export interface PagingProps {
  readonly view: View;
  /** Groups that are here. */
  readonly known: number;
  /** Whether there are more that have not been fetched. */
  readonly hasMore: boolean;
  readonly navigate: (view: View) => void;
}

export function Paging({ view, known, hasMore, navigate }: PagingProps) {
  const { page } = view;
  const from = (page - 1) * PAGE_ROWS + 1;
  const to = Math.min(page * PAGE_ROWS, known);
  const isLast = to >= known && !hasMore;
  if (page === 1 && isLast) return null;
  return (
    <nav className="paging" aria-label="Pages of the table">
      <span role="status">
        {to < from ? 'No more groups' : `${from}–${to} of ${hasMore ? `more than ${known}` : known} groups`}
      </span>
      <button type="button" disabled={page === 1} onClick={() => navigate({ ...view, page: page - 1 })}>
        Previous
      </button>
      <button type="button" disabled={isLast} onClick={() => navigate({ ...view, page: page + 1 })}>
        Next
      </button>
    </nav>
  );
}

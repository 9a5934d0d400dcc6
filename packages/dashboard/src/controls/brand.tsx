export function Brand() {
  return (
    <span className="brand">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M8 23V15M13.500 23V9M19 23v-6M24.500 23V12" />
      </svg>
      Meterline
    </span>
  );
}

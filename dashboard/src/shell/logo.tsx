export const Logo = () => (
  <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="currentColor" />
    <g className="logo-waves">
      <path d="M5 12c4 0 4 3 8 3s4-3 7-3 4 3 7 3" />
      <path d="M5 19c4 0 4 3 8 3s4-3 7-3 4 3 7 3" />
    </g>
  </svg>
);

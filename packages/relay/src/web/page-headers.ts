/**
 * The page's policy. It talks to any relay of the network, so to any address by HTTPS and WSS; every script
 * is its own; one policy of Trusted Types exists, for the addresses of its worker and service worker.
 */
export const pagePolicy: readonly string[] = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self' https: wss:",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types posthouse',
];

/** Headers of every answer under `/app/`, in addition to {@link pagePolicy}. */
export const guardHeaders = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

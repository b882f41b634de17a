/** What to write into the configuration of a proxy; `deploy/proxies` has whole files. */

/** What a proxy has to do for the relay. */
export type ProxyTask = 'upgrade' | 'address';

interface ProxyLines {
  readonly name: string;
  /** Finds the proxy by the header `Server` or `Via` of an answer. */
  readonly sign: RegExp;
  /** Passes WebSockets on. */
  readonly upgrade: string;
  /** Says the client's address, in place of what the client says. */
  readonly address: string;
}

const proxies: readonly ProxyLines[] = [
  {
    name: 'nginx',
    sign: /nginx|openresty/i,
    upgrade:
      '`proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";` in its `location`',
    address: '`proxy_set_header X-Forwarded-For $remote_addr;` in its `location`',
  },
  {
    name: 'Caddy',
    sign: /caddy/i,
    upgrade:
      '`reverse_proxy` with the address of the relay, without `header_up` of Connection or Upgrade',
    address: '`header_up X-Forwarded-For {remote_host}` in `reverse_proxy`',
  },
  {
    name: 'Apache',
    sign: /apache/i,
    upgrade: '`ProxyPass / http://ADDRESS/ upgrade=websocket` (2.4.47 or later)',
    address: '`RequestHeader set X-Forwarded-For "expr=%{REMOTE_ADDR}"` and `ProxyAddHeaders Off`',
  },
  {
    name: 'HAProxy',
    sign: /haproxy/i,
    upgrade:
      '`mode http`, `timeout tunnel 1h` and `bind ... alpn h2,http/1.1`, without `option httpclose`',
    address: '`http-request set-header X-Forwarded-For %[src]` in its `frontend`',
  },
];

/** Headers of an answer that came through the proxy. */
export type ProxyHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns the lines to add for a task: of the proxy that the headers show, or of each.
 *
 * @example
 * proxyLines('address', { server: 'Caddy' }); // 'Caddy: `header_up X-Forwarded-For ...'
 */
export function proxyLines(task: ProxyTask, headers: ProxyHeaders = {}): string {
  const signs = `${headers.server ?? ''} ${headers.via ?? ''}`;
  const found = proxies.filter(({ sign }) => sign.test(signs));
  const meant = found.length > 0 ? found : proxies;
  return meant.map((proxy) => `${proxy.name}: ${proxy[task]}`).join('; ');
}

/**
 * Returns the origin of a relay address: what authentication signs and what a session is bound to
 * (chapter 02, section 8). It neither checks nor repairs the address; `checkHttpsEndpoint` and
 * `checkWssEndpoint` decide about that.
 *
 * @throws TypeError for what is no `https` or `wss` URL
 * @example
 * relayOrigin('wss://RELAY.example:443/svc/v1'); // 'https://relay.example'
 */
export function relayOrigin(endpoint: string): string {
  const url = new URL(endpoint.replace(/^wss:/i, 'https:'));
  if (url.protocol !== 'https:') throw new TypeError('a relay address is https or wss');
  return url.origin;
}

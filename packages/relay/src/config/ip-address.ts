/** Converts an IPv4-mapped IPv6 address to IPv4. */
export function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=[0-9.]+$)/i, '');
}

/** The eight 16-bit groups of an IPv6 address, which the caller knows to be one. */
export function ipv6Groups(address: string): number[] {
  // The URL parser writes the one canonical form, with at most one run of zeros left out.
  const { hostname } = new URL(`https://[${address.replace(/%.*$/, '')}]`);
  const [head = '', tail = ''] = hostname.slice(1, -1).split('::');
  const front = groups(head);
  const back = groups(tail);
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => 0);
  return [...front, ...zeros, ...back];
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

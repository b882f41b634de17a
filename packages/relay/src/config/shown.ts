/** A value as people may see it, in a terminal or an error: URLs lose their passwords. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'none';
  return text
    .replaceAll(/(:\/\/[^\s/:@"]*):[^\s"]*@/g, '$1:[secret]@')
    .replaceAll(/([?&]password=)[^&\s"]*/gi, '$1[secret]');
}

/** Texts, comments, and commas before a closing bracket. */
const pattern = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|,(?=(?:\s|\/\/[^\n]*(?:\n|$))*[}\]])/g;

/**
 * Returns the JSON of a text that has comments (`//` to the end of the line) or a comma after the
 * last member, as the file that `posthouse init` writes. They become spaces, so that an error names
 * the place in the file.
 *
 * @example
 * plainJson('{ "log": "info", // a remark\n}');
 */
export function plainJson(text: string): string {
  return text.replace(pattern, (found) =>
    found.startsWith('"') ? found : ' '.repeat(found.length),
  );
}

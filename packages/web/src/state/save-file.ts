/** A file for the person to keep. */
export interface SavedFile {
  readonly name: string;
  readonly content: Blob;
}

/** Has the browser save a file. */
export function saveFile({ name, content }: SavedFile): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download has begun; some browsers read it a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * Runs work whose error an operator has to understand: its message begins with the name of the
 * setting or file that is wrong. The error keeps its code.
 */
export async function withName<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    throw Object.assign(new Error(`${name}: ${message}`, { cause: error }), { code });
  }
}

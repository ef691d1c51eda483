/** The fixture on the Java SDK: {@code Peer server TRANSPORT REVISION}, {@code Peer client PLAN}. */
public final class Peer {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 3 && arguments[0].equals("server")) {
            new Server().serve(arguments[1]);
        } else if (arguments.length >= 2 && arguments[0].equals("client")) {
            // The SDK leaves threads behind that would keep the process alive.
            System.exit(Client.check(arguments[1]) ? 0 : 1);
        } else {
            System.err.println("usage: Peer server TRANSPORT REVISION, Peer client PLAN");
            System.exit(2);
        }
    }
}

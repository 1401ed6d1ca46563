import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Reads a response slowly with one of Java's HTTP libraries: Stack LIBRARY URL BODY PAUSE_MS */
public class Stack {
  static InputStream open(String library, String url, String body) throws Exception {
    if (library.equals("HttpClient")) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(url))
          .header("content-type", "application/json")
          .header("authorization", "Bearer key")
          .POST(HttpRequest.BodyPublishers.ofString(body))
          .build();
      HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
      return client.send(request, HttpResponse.BodyHandlers.ofInputStream()).body();
    }
    HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
    connection.setRequestMethod("POST");
    connection.setRequestProperty("content-type", "application/json");
    // It asks for text/html by itself: without a key the gateway takes it for a browser.
    connection.setRequestProperty("authorization", "Bearer key");
    connection.setDoOutput(true);
    connection.getOutputStream().write(body.getBytes());
    return connection.getInputStream();
  }

  public static void main(String[] args) {
    long bytes = 0;
    String error = null;
    try (InputStream body = open(args[0], args[1], args[2])) {
      byte[] piece = new byte[65536];
      for (int read = body.read(piece); read >= 0; read = body.read(piece)) {
        if (bytes == 0) Thread.sleep(Long.parseLong(args[3]));
        bytes += read;
      }
    } catch (Exception problem) {
      error = problem.getClass().getSimpleName();
    }
    System.out.println("{\"bytes\":" + bytes + ",\"error\":" + (error == null ? "null" : "\"" + error + "\"") + "}");
    System.exit(0);
  }
}
